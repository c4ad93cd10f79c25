// The sidebar next to the feed.
import { graphql } from "relay-runtime";

graphql`
  fragment Sidebar_viewer on User {
    ...ProfileHeader_user
    ...FollowersPanel_user
    ...FollowingPanel_user
    ...RecentPosts_user
  }
`;
