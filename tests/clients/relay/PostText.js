// The text of a post.
import { graphql } from "relay-runtime";

graphql`
  fragment PostText_post on Post {
    text
  }
`;
