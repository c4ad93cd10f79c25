// Follows you, mutual, or nothing.
import { graphql } from "relay-runtime";

graphql`
  fragment RelationshipBadge_user on User {
    relationship {
      ...RelationshipBadge_relationship
    }
  }
`;

graphql`
  fragment RelationshipBadge_relationship on Relationship {
    state
    followedBySince
  }
`;
