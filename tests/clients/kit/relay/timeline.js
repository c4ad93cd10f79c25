import { graphql } from "relay-runtime";

graphql`
  fragment timelineEntry on TimelineItem {
    __typename
    id
    author {
      id
    }
    ... on Post {
      text
      quotedPost {
        id
        author {
          id
        }
      }
    }
    ... on Repost {
      post {
        id
        text
        author {
          id
        }
        quotedPost {
          id
          author {
            id
          }
        }
      }
    }
  }
`;

graphql`
  query timelinePageQuery($first: Int!, $after: String) {
    viewer {
      homeTimeline {
        id
        liveCursor(first: $first, after: $after)
        entries(first: $first, after: $after) @connection(key: "timeline_entries") {
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
  subscription timelineLiveSubscription($after: String) {
    homeTimeline(after: $after) {
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
      ... on AuthorRemoved {
        userId
      }
    }
  }
`;
