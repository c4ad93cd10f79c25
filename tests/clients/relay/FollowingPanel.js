// Whom the viewer followed last.
import { graphql } from "relay-runtime";

graphql`
  fragment FollowingPanel_user on User {
    following(first: 10) @connection(key: "FollowingPanel_following") {
      totalCount
      edges {
        ...FollowingPanel_edge
        node {
          id
        }
      }
    }
  }
`;

graphql`
  fragment FollowingPanel_edge on FollowEdge {
    followedAt
    node {
      ...UserRow_user
    }
  }
`;
