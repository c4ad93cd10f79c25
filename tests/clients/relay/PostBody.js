// The text and location of a post.
import { graphql } from "relay-runtime";

graphql`
  fragment PostBody_post on Post {
    ...PostText_post
    ...PostBody_place
  }
`;

graphql`
  fragment PostBody_place on Post {
    location {
      ...MapPin_location
    }
  }
`;
