// What can be done with a post.
import { graphql } from "relay-runtime";

graphql`
  fragment PostMenu_post on Post {
    id
    author {
      ...PostMenu_author
    }
  }
`;

graphql`
  fragment PostMenu_author on User {
    ...UserName_user
    ...FollowButton_user
  }
`;
