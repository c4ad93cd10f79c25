import { graphql } from "relay-runtime";

graphql`
  query timelinePageQuery($count: Int!) {
    viewer {
      homeTimeline {
        id
        liveCursor
        posts(first: $count) @connection(key: "timeline_posts") {
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
  query timelineNextQuery($id: ID!, $count: Int!, $after: String) {
    node(id: $id) {
      ... on Timeline {
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
