// The application's own operations of lists in Apollo Client and urql. docs/client-kit.md shows the first two.
const POST = `id text author { id login } quotedPost { id author { id } }`;
const EDGE = `cursor node {
  __typename id createdAt author { id login }
  ... on Post { ${POST} }
  ... on Repost { post { ${POST} } }
}`;

/** All pages: `$after` is missing in the first one. */
export const PAGE = `query Page($first: Int!, $after: String) {
  viewer {
    id
    homeTimeline {
      id
      liveCursor(first: $first, after: $after)
      entries(first: $first, after: $after) { edges { ${EDGE} } pageInfo { hasNextPage endCursor } }
    }
  }
}`;

export const LIVE = `subscription Live($after: String) {
  homeTimeline(after: $after) {
    __typename
    cursor
    ... on PostAdded { timelineEdge { ${EDGE} } }
    ... on RepostAdded { timelineEdge { ${EDGE} } }
    ... on PostRemoved { postId }
    ... on RepostRemoved { repostId }
    ... on AuthorRemoved { userId }
    ... on AuthorHidden { userId }
  }
}`;

const NOTIFICATION = `__typename id at isRead actors(limit: 3) { id login name } actorsCount ... on PostNotification { post { id text } }`;

/** All pages of the notifications, or of those of some kinds. */
export const FEED = `query Feed($first: Int!, $after: String, $kinds: [NotificationKind!]) {
  viewer {
    id
    notifications {
      id
      unreadCount
      hasMoreUnread
      liveCursor(first: $first, after: $after, kinds: $kinds)
      entries(first: $first, after: $after, kinds: $kinds) {
        edges { cursor node { ${NOTIFICATION} } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}`;

export const LIVE_FEED = `subscription LiveFeed($after: String) {
  notifications(after: $after) {
    __typename
    cursor
    ... on NotificationAdded { edge { cursor node { ${NOTIFICATION} } } feed { id unreadCount hasMoreUnread } }
    ... on NotificationsChanged { feed { id unreadCount hasMoreUnread } }
  }
}`;

/** What an app can show beside the list: its cursors belong to no list, and must not move a subscription. */
export const BADGE = `query Badge { viewer { homeTimeline { id liveCursor } notifications { id unreadCount hasMoreUnread liveCursor } } }`;
