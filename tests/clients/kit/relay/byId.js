import { graphql } from "relay-runtime";

graphql`
  query byIdPageQuery($id: ID!, $first: Int!, $after: String) {
    node(id: $id) {
      __typename
      id
      ... on Timeline {
        liveCursor(first: $first, after: $after)
        entries(first: $first, after: $after) @connection(key: "byId_entries") {
          __id
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
