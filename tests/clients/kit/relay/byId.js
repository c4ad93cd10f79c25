import { graphql } from "relay-runtime";

graphql`
  query byIdPageQuery($id: ID!, $count: Int!, $after: String) {
    node(id: $id) {
      ... on Timeline {
        id
        liveCursor(first: $count, after: $after)
        entries(first: $count, after: $after) @connection(key: "byId_entries") {
          edges {
            node {
              ...timelineEntry @relay(mask: false)
            }
          }
        }
      }
    }
  }
`;

graphql`
  subscription byIdLiveSubscription($id: ID!, $after: String) {
    timeline(timelineId: $id, after: $after) {
      __typename
      cursor
      ... on PostAdded {
        timelineEdge {
          cursor
          node {
            ...timelineEntry @relay(mask: false)
          }
        }
      }
      ... on RepostAdded {
        timelineEdge {
          cursor
          node {
            ...timelineEntry @relay(mask: false)
          }
        }
      }
      ... on PostRemoved {
        postId
      }
      ... on RepostRemoved {
        repostId
      }
      ... on AuthorHidden {
        userId
      }
    }
  }
`;
