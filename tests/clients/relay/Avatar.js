// A user's picture, drawn from the name.
import { graphql } from "relay-runtime";

graphql`
  fragment Avatar_user on User {
    login
    name
  }
`;
