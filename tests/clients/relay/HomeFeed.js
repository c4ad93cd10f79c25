// The home timeline, page by page.
import { graphql } from "relay-runtime";

graphql`
  fragment HomeFeed_viewer on Viewer
  @refetchable(queryName: "HomeFeedQuery")
  @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, after: { type: "String" }) {
    homeTimeline {
      liveCursor(first: $count, after: $after)
      entries(first: $count, after: $after) @connection(key: "HomeFeed_entries") {
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
  fragment HomeFeed_edge on TimelineEdge {
    node {
      ...EntryCard_entry
    }
  }
`;

export const live = graphql`
  subscription HomeFeedSubscription($after: String) {
    homeTimeline(after: $after) {
      __typename
      cursor
      ... on PostAdded {
        timelineEdge {
          ...HomeFeed_edge
        }
      }
      ... on RepostAdded {
        timelineEdge {
          ...HomeFeed_edge
        }
      }
      ... on PostRemoved {
        postId
      }
      ... on RepostRemoved {
        repostId
      }
    }
  }
`;
