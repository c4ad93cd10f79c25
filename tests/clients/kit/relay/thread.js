import { graphql } from "relay-runtime";

graphql`
  query threadPageQuery($id: ID!, $first: Int!, $after: String) {
    post(id: $id) {
      id
      likesCount
      author {
        id
      }
      liveCursor(first: $first, after: $after)
      replies(first: $first, after: $after) @connection(key: "thread_replies") {
        __id
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
