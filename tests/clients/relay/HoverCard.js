// What appears when the pointer rests on an author.
import { graphql } from "relay-runtime";

graphql`
  fragment HoverCard_user on User {
    ...ProfileHeader_user
    ...FollowButton_user
    ...HoverCard_followers
  }
`;

graphql`
  fragment HoverCard_followers on User {
    followers(first: 3) {
      totalCount
      edges {
        node {
          ...HoverCard_face
        }
      }
    }
  }
`;

graphql`
  fragment HoverCard_face on User {
    ...Avatar_user
    ...RelationshipBadge_user
  }
`;
