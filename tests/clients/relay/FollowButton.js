// Follow, or unfollow.
import { graphql } from "relay-runtime";

graphql`
  fragment FollowButton_user on User {
    id
    relationship {
      ...FollowButton_relationship
    }
  }
`;

graphql`
  fragment FollowButton_relationship on Relationship {
    following
    followingSince
  }
`;
