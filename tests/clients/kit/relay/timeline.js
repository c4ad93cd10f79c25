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
  query timelinePageQuery($count: Int!, $after: String) {
    viewer {
      homeTimeline {
        id
        liveCursor(first: $count, after: $after)
        entries(first: $count, after: $after) @connection(key: "timeline_entries") {
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
