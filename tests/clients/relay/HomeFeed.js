// The home timeline, page by page.
import { graphql } from "relay-runtime";

graphql`
  fragment HomeFeed_viewer on Viewer
  @refetchable(queryName: "HomeFeedQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, after: { type: "String" }) {
    homeTimeline {
      liveCursor(first: $count, after: $after)
      posts(first: $count, after: $after) @connection(key: "HomeFeed_posts") {
        edges {
          ...HomeFeed_edge
          node {
            id
          }
        }
      }
    }
  }
`;

graphql`
  fragment HomeFeed_edge on PostEdge {
    node {
      ...PostCard_post
    }
  }
`;

export const live = graphql`
  subscription HomeFeedSubscription($after: String) {
    homeTimeline(after: $after) {
      __typename
      cursor
      ... on PostAdded {
        edge {
          ...HomeFeed_edge
        }
      }
      ... on PostRemoved {
        postId
      }
    }
  }
`;
