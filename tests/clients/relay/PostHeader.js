// Who published a post, and when.
import { graphql } from "relay-runtime";

graphql`
  fragment PostHeader_post on Post {
    author {
      ...PostHeader_author
    }
    ...PostHeader_time
    ...PostMenu_post
  }
`;

graphql`
  fragment PostHeader_time on Post {
    createdAt
  }
`;

graphql`
  fragment PostHeader_author on User {
    ...Avatar_user
    ...UserLink_user
    ...RelationshipBadge_user
    ...HoverCard_user
  }
`;
