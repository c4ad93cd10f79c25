// The operations of the timelines in Apollo Client and urql. docs/client-kit.md shows them.
const EDGE = `cursor node { __typename id text author { __typename id login } repostOf { __typename id author { __typename id } } }`;

/** The first page. Only this operation selects `liveCursor`. */
export const PAGE = `query Page($first: Int!) {
  viewer {
    id
    homeTimeline {
      id
      liveCursor
      posts(first: $first) { edges { ${EDGE} } pageInfo { hasNextPage endCursor } }
    }
  }
}`;

export const NEXT = `query Next($first: Int!, $after: String!) {
  viewer {
    id
    homeTimeline {
      id
      posts(first: $first, after: $after) { edges { ${EDGE} } pageInfo { hasNextPage endCursor } }
    }
  }
}`;

export const LIVE = `subscription Live($after: String) {
  homeTimeline(after: $after) {
    __typename
    cursor
    ... on PostAdded { edge { ${EDGE} } }
    ... on PostRemoved { postId }
    ... on AuthorRemoved { userId }
    ... on AuthorHidden { userId }
  }
}`;

const NOTIFICATION = `id kind at isRead actors(first: 3) { id login name } actorsCount post { id text }`;

/** The first page of the notifications. Only this operation selects `liveCursor`. */
export const FEED = `query Feed($first: Int!) {
  notifications {
    id
    unreadCount
    liveCursor
    entries(first: $first) { edges { cursor node { ${NOTIFICATION} } } pageInfo { hasNextPage endCursor } }
  }
}`;

export const NEXT_FEED = `query NextFeed($first: Int!, $after: String!) {
  notifications {
    id
    entries(first: $first, after: $after) { edges { cursor node { ${NOTIFICATION} } } pageInfo { hasNextPage endCursor } }
  }
}`;

export const LIVE_FEED = `subscription LiveFeed($after: String) {
  notifications(after: $after) {
    __typename
    cursor
    ... on NotificationAdded { edge { cursor node { ${NOTIFICATION} } } feed { id unreadCount } }
    ... on NotificationsChanged { feed { id unreadCount } }
  }
}`;

/** What an app can show beside the list: it must not move the subscription. */
export const BADGE = `query Badge { viewer { id homeTimeline { id liveCursor } } notifications { id unreadCount liveCursor } }`;
