// The user's own newest posts.
import { graphql } from "relay-runtime";

graphql`
  fragment RecentPosts_user on User {
    timeline {
      entries(first: 5) {
        edges {
          node {
            ...RecentPosts_post @alias
          }
        }
      }
    }
  }
`;

graphql`
  fragment RecentPosts_post on Post {
    ...PostText_post
    ...PostHeader_time
    ...PostFooter_post
  }
`;
