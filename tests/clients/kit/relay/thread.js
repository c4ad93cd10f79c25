import { graphql } from "relay-runtime";

graphql`
  query threadPageQuery($id: ID!, $count: Int!, $after: String) {
    post(id: $id) {
      id
      likesCount
      liveCursor(first: $count, after: $after)
      replies(first: $count, after: $after) @connection(key: "thread_replies") {
        edges {
          node {
            id
            text
            author {
              id
            }
          }
        }
      }
    }
  }
`;

graphql`
  subscription threadLiveSubscription($id: ID!, $after: String) {
    thread(postId: $id, after: $after) {
      __typename
      cursor
      ... on ReplyAdded {
        postEdge {
          cursor
          node {
            id
            text
            author {
              id
            }
          }
        }
      }
      ... on PostChanged {
        post {
          id
          likesCount
        }
      }
      ... on PostRemoved {
        postId
      }
      ... on AuthorHidden {
        userId
      }
    }
  }
`;
