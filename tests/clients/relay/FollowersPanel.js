// The newest followers.
import { graphql } from "relay-runtime";

graphql`
  fragment FollowersPanel_user on User {
    followers(first: 10) @connection(key: "FollowersPanel_followers") {
      totalCount
      edges {
        ...FollowersPanel_edge
        node {
          id
        }
      }
    }
  }
`;

graphql`
  fragment FollowersPanel_edge on FollowEdge {
    followedAt
    node {
      ...UserRow_user
    }
  }
`;
