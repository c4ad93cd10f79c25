// A user in a list.
import { graphql } from "relay-runtime";

graphql`
  fragment UserRow_user on User {
    ...Avatar_user
    ...UserLink_user
    ...RelationshipBadge_user
    ...FollowButton_user
    ...HoverCard_user
  }
`;
