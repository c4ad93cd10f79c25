import { graphql } from "relay-runtime";

graphql`
  query timelinePageQuery($count: Int!, $after: String) {
    viewer {
      homeTimeline {
        id
        liveCursor(first: $count, after: $after)
        posts(first: $count, after: $after) @connection(key: "timeline_posts") {
          edges {
            node {
              id
              text
              author {
                id
              }
              repostOf {
                author {
                  id
                }
              }
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
        edge {
          cursor
          node {
            __typename
            id
            text
            author {
              id
            }
            repostOf {
              author {
                id
              }
            }
          }
        }
      }
      ... on PostRemoved {
        postId
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
