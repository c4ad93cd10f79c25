// The application's own operations of lists in Apollo Client and urql.
import { readFileSync } from "node:fs";
import { parse, print } from "graphql";

/** Each operation of a file with the fragments. */
function operationsOf(file) {
  const { definitions } = parse(readFileSync(new URL(file, import.meta.url), "utf8"));
  const fragments = definitions.filter(({ kind }) => kind === "FragmentDefinition");
  const operations = definitions.filter((each) => !fragments.includes(each));
  return operations.map((each) => print({ kind: "Document", definitions: [each, ...fragments] }));
}

export const [PAGE, LIVE] = operationsOf("app/home.graphql");

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
