// A link to a profile.
import { graphql } from "relay-runtime";

graphql`
  fragment UserLink_user on User {
    login
    ...UserName_user
  }
`;
