// The bar on top, with the menu of the account.
import { graphql } from "relay-runtime";

graphql`
  fragment NavigationBar_viewer on User {
    ...Avatar_user
    ...NavigationBar_menu
  }
`;

graphql`
  fragment NavigationBar_menu on User {
    ...UserName_user
    ...Counts_user
  }
`;
