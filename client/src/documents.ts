const AUTHOR = `author { id login name }`;
const POST = `
  text ${AUTHOR} likesCount repliesCount repostsCount quotesCount viewerHasLiked viewerHasReposted
  quotedPost { id text ${AUTHOR} }`;
const ENTRY = `__typename id createdAt ${AUTHOR} ... on Post {${POST} } ... on Repost { post { id createdAt ${POST} } }`;
const REPLY = `__typename id createdAt ${POST}`;
const NOTIFICATION = `
  __typename id at isRead actorsCount actors(limit: 3) { id login name }
  ... on PostNotification { post { id text } }`;

const PAGE_INFO = `pageInfo { hasNextPage endCursor }`;
const TIMELINE = `
  id
  liveCursor(first: $first, after: $after)
  entries(first: $first, after: $after) { edges { cursor node { ${ENTRY} } } ${PAGE_INFO} }`;
const TIMELINE_EVENT = `
  __typename cursor
  ... on PostAdded { timelineEdge { cursor node { ${ENTRY} } } }
  ... on RepostAdded { timelineEdge { cursor node { ${ENTRY} } } }
  ... on PostRemoved { postId }
  ... on RepostRemoved { repostId }
  ... on AuthorHidden { userId }
  ... on AuthorRemoved { userId }`;
const UNREAD = `id unreadCount hasMoreUnread`;

/** The query for a page of a list, and the subscription to the list's events. */
export interface Documents {
  query: string;
  subscription: string;
}

export const HOME: Documents = {
  query: `query HomeTimeline($first: Int!, $after: String) { viewer { id homeTimeline {${TIMELINE} } } }`,
  subscription: `subscription LiveHomeTimeline($after: String) { homeTimeline(after: $after) {${TIMELINE_EVENT} } }`,
};

export const TIMELINE_BY_ID: Documents = {
  query: `query Timeline($id: ID!, $first: Int!, $after: String) {
    node(id: $id) { __typename id ... on Timeline {${TIMELINE} } }
  }`,
  subscription: `subscription LiveTimeline($id: ID!, $after: String) {
    timeline(timelineId: $id, after: $after) {${TIMELINE_EVENT} }
  }`,
};

export const THREAD: Documents = {
  query: `query Thread($id: ID!, $first: Int!, $after: String) {
    post(id: $id) {
      ${REPLY}
      liveCursor(first: $first, after: $after)
      replies(first: $first, after: $after) { edges { cursor node { ${REPLY} } } ${PAGE_INFO} }
    }
  }`,
  subscription: `subscription LiveThread($id: ID!, $after: String) {
    thread(postId: $id, after: $after) {
      __typename cursor
      ... on ReplyAdded { postEdge { cursor node { ${REPLY} } } }
      ... on PostRemoved { postId }
      ... on PostChanged { post { id likesCount repliesCount repostsCount quotesCount } }
      ... on AuthorHidden { userId }
    }
  }`,
};

export const NOTIFICATIONS: Documents = {
  query: `query Notifications($first: Int!, $after: String, $kinds: [NotificationKind!]) {
    viewer {
      id
      notifications {
        ${UNREAD}
        liveCursor(first: $first, after: $after, kinds: $kinds)
        entries(first: $first, after: $after, kinds: $kinds) { edges { cursor node { ${NOTIFICATION} } } ${PAGE_INFO} }
      }
    }
  }`,
  subscription: `subscription LiveNotifications($after: String) {
    notifications(after: $after) {
      __typename cursor
      ... on NotificationAdded { edge { cursor node { ${NOTIFICATION} } } feed { ${UNREAD} } }
      ... on NotificationsChanged { feed { ${UNREAD} } }
    }
  }`,
};
