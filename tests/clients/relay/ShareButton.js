// A button that copies a post's address.
import { graphql } from "relay-runtime";

graphql`
  fragment ShareButton_post on Post {
    id
    author {
      ...UserLink_user
    }
  }
`;
