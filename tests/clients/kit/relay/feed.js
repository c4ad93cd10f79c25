import { graphql } from "relay-runtime";

graphql`
  query feedPageQuery($first: Int!, $after: String, $kinds: [NotificationKind!]) {
    viewer {
      notifications {
        id
        unreadCount
        liveCursor(first: $first, after: $after, kinds: $kinds)
        entries(first: $first, after: $after, kinds: $kinds) @connection(key: "feed_entries") {
          __id
          edges {
            node {
              __typename
              id
              isRead
              actors(limit: 3) {
                id
                login
              }
              ... on PostNotification {
                post {
                  id
                  text
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
  subscription feedLiveSubscription($after: String) {
    notifications(after: $after) {
      __typename
      cursor
      ... on NotificationAdded {
        edge {
          cursor
          node {
            __typename
            id
            isRead
            actors(limit: 3) {
              id
              login
            }
            ... on PostNotification {
              post {
                id
                text
              }
            }
          }
        }
        feed {
          id
          unreadCount
        }
      }
      ... on NotificationsChanged {
        feed {
          id
          unreadCount
        }
      }
    }
  }
`;

graphql`
  query feedBadgeQuery {
    viewer {
      homeTimeline {
        id
        liveCursor
      }
      notifications {
        id
        liveCursor
      }
    }
  }
`;
