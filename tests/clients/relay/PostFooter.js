// The platform of a post, and its share button.
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
