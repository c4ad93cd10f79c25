// An entry of a timeline: a post, or a repost with its post.
import { graphql } from "relay-runtime";

graphql`
  fragment EntryCard_entry on TimelineItem {
    ...PostCard_post @alias
    ...EntryCard_repost @alias
  }
`;

graphql`
  fragment EntryCard_repost on Repost {
    createdAt
    author {
      ...UserLink_user
    }
    post {
      ...PostCard_post
    }
  }
`;
