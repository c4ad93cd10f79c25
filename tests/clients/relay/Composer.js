// Where the viewer writes.
import { graphql } from "relay-runtime";

graphql`
  fragment Composer_viewer on User {
    id
    ...Avatar_user
  }
`;
