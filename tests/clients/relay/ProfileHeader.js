// The head of a profile.
import { graphql } from "relay-runtime";

graphql`
  fragment ProfileHeader_user on User {
    ...Avatar_user
    ...UserLink_user
    ...ProfileHeader_bio
    ...ProfileHeader_joined
    ...Counts_user
  }
`;

graphql`
  fragment ProfileHeader_bio on User {
    bio
  }
`;

graphql`
  fragment ProfileHeader_joined on User {
    joinedAt
  }
`;
