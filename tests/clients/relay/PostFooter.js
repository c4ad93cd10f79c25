// What a post was written with, and how to share it.
import { graphql } from "relay-runtime";

graphql`
  fragment PostFooter_post on Post {
    ...PostFooter_platform
    ...ShareButton_post
  }
`;

graphql`
  fragment PostFooter_platform on Post {
    platform
  }
`;
