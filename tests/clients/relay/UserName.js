// A user's name.
import { graphql } from "relay-runtime";

graphql`
  fragment UserName_user on User {
    name
  }
`;
