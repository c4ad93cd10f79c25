// A post with everything around it.
import { graphql } from "relay-runtime";

graphql`
  fragment PostCard_post on Post {
    id
    ...PostHeader_post
    ...PostBody_post
    ...PostFooter_post
  }
`;
