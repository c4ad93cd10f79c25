import type { ApolloCache, FieldPolicy, FieldReadFunction, Reference, StoreObject } from "@apollo/client";
import { LISTS, OWNERS, isFirstPage, isPage, listKey, takes } from "./lists.js";
import type { Arguments } from "./lists.js";
import { indexFor, withItemAt } from "./order.js";
import type { ListedEdge } from "./order.js";
import type { Arrived, Owner } from "./pages.js";

/** An edge as a subscription returns it, with `__typename` and `id` of its node. */
export interface Edge {
  cursor: string;
  node: { __typename?: string; id: string };
}

/** An event of a timeline, a thread or the notifications, with the fields that the functions of this module need. */
export interface Event {
  __typename: string;
  edge?: Edge;
  timelineEdge?: Edge;
  postEdge?: Edge;
  postId?: string;
  repostId?: string;
  userId?: string;
}

interface StoredEdge extends StoreObject {
  cursor: string;
  node: Reference;
}

interface StoredConnection {
  edges: readonly StoredEdge[];
  pageInfo?: { endCursor?: string | null; hasNextPage?: boolean };
}

/**
 * The types of each interface of the schema, which Apollo Client needs to match fragments such as `... on PostAdded`.
 */
export const possibleTypes = {
  Attachment: ["ImageAttachment", "VideoAttachment"],
  Node: [
    ...["FollowNotification", "LikeNotification", "MentionNotification", "NotificationFeed", "Post", "QuoteNotification"],
    ...["Relationship", "ReplyNotification", "Repost", "RepostNotification", "Session", "Timeline", "User", "UserList"],
    "Viewer",
  ],
  Notification: [
    ...["FollowNotification", "LikeNotification", "MentionNotification"],
    ...["QuoteNotification", "ReplyNotification", "RepostNotification"],
  ],
  NotificationEvent: ["Checkpoint", "Gap", "NotificationAdded", "NotificationsChanged"],
  PostNotification: [
    ...["LikeNotification", "MentionNotification", "QuoteNotification", "ReplyNotification", "RepostNotification"],
  ],
  StreamEvent: [
    ...["Checkpoint", "Gap", "PostAdded", "PostRemoved", "RepostAdded", "RepostRemoved", "UserFollowed", "UserUnfollowed"],
  ],
  TextEntity: ["HashtagEntity", "LinkEntity", "MentionEntity"],
  ThreadEvent: ["AuthorAdded", "AuthorHidden", "Checkpoint", "Gap", "PostChanged", "PostRemoved", "ReplyAdded"],
  TimelineEvent: [
    ...["AuthorAdded", "AuthorHidden", "AuthorRemoved", "Checkpoint", "Gap", "PostAdded", "PostRemoved"],
    ...["RepostAdded", "RepostRemoved", "TimelineChanged"],
  ],
  TimelineItem: ["Post", "Repost"],
};

/**
 * Return the type policies for a cache. Pass `relayStylePagination()`, which replaces a list with each first page.
 *
 * A next page that arrives afterwards belongs to the old list and would leave a gap in the new one, so it is ignored.
 * All pages of a list share the `liveCursor` of its first page; later pages have null. Notifications of other `kinds`
 * are a separate list. Each event of a subscription replaces the previous one. Objects that refer to a removed post
 * stay, and their field becomes null: a dangling reference would make every query with the field incomplete, and Apollo
 * Client would fetch the whole page again. There is only one viewer, even in documents that do not select its id.
 */
export function typePolicies<Policy extends FieldPolicy>(pagination: Policy) {
  const list = continuing(pagination);
  return {
    Viewer: { keyFields: [] as [] },
    Timeline: { fields: { liveCursor, entries: list } },
    NotificationFeed: { fields: { liveCursor, entries: { ...list, keyArgs: listKey } } },
    PostNotification: { fields: referring("post") },
    Post: { fields: { liveCursor, replies: list, ...referring("replyTo", "quotedPost", "threadRoot") } },
    Repost: { fields: referring("post") },
    Subscription: { fields: replacing("homeTimeline", "timeline", "thread", "notifications", "events") },
  };
}

const liveCursor: FieldPolicy<string | null> = {
  keyArgs: (args) => (isPage(args) ? `list${listKey(args)}` : false),
  merge: (existing, incoming) => incoming ?? existing ?? null,
};

const nullIfRemoved: FieldReadFunction<Reference | null> = (post, { canRead }) =>
  post === undefined || canRead(post) ? post : null;

const referring = (...names: string[]) => Object.fromEntries(names.map((name) => [name, nullIfRemoved]));
const replacing = (...names: string[]) => Object.fromEntries(names.map((name) => [name, { merge: false as const }]));

interface Watcher {
  id: string;
  key: string;
  arrived: Arrived;
}

const watchersOf = new WeakMap<ApolloCache, Set<Watcher>>();

/** Call the watchers of the list that has this storage. Each list of each object has its own storage. */
function reportPage(cache: ApolloCache, list: unknown): void {
  // In the next microtask, the whole page is in the cache.
  queueMicrotask(() => {
    for (const { id, key, arrived } of watchersOf.get(cache) ?? []) {
      const liveCursor = hasList(cache, id, key, list) ? liveCursorOf(cache, id, key) : undefined;
      if (typeof liveCursor === "string") arrived(liveCursor);
    }
  });
}

function hasList(cache: ApolloCache, id: string, key: string, list: unknown): boolean {
  let isFound = false;
  cache.modify({
    id,
    fields(value: unknown, { fieldName, storeFieldName, storage }) {
      isFound ||= storage === list && keyOfField(fieldName, storeFieldName) === key;
      return value;
    },
  });
  return isFound;
}

/** Return the `liveCursor` of a list of an object. */
function liveCursorOf(cache: ApolloCache, id: string, key: string): unknown {
  let found: unknown;
  cache.modify({ id, fields: { [`liveCursor:list${key}`]: (value: unknown) => (found = value) } });
  return found;
}

/** Return the `listKey` with which a field is stored. */
function keyOfField(fieldName: string, storeFieldName: string): string {
  return storeFieldName.slice(fieldName.length + 1);
}

/**
 * Call a function with the `liveCursor` of each first page of a list that is written into the cache. The owner of the
 * list is a timeline, or the notifications with the `kinds` of the list. Return a function that stops watching. Requires
 * the policies of `typePolicies`.
 */
export function watchPages(cache: ApolloCache, { kinds, ...owner }: Owner, arrived: Arrived): () => void {
  const watcher = { id: cache.identify(owner) ?? "", key: listKey({ kinds }), arrived };
  const watchers = watchersOf.get(cache) ?? new Set();
  watchersOf.set(cache, watchers.add(watcher));
  return () => void watchers.delete(watcher);
}

function continuing<Policy extends FieldPolicy>(pagination: Policy): Policy {
  const merge = pagination.merge;
  if (typeof merge !== "function") return pagination;
  const mergeContinuing: typeof merge = (existing, incoming, options) => {
    const after: unknown = options.args?.["after"];
    if (isFirstPage(options.args)) reportPage(options.cache, options.storage);
    const list = existing as StoredConnection | undefined;
    if (typeof after === "string" && list && !continues(list, after)) return list;
    return merge(existing, incoming, options) as unknown;
  };
  return { ...pagination, merge: mergeContinuing };
}

function continues({ edges, pageInfo }: StoredConnection, after: string): boolean {
  return pageInfo?.endCursor === after || edges.at(-1)?.cursor === after;
}

/**
 * Insert an edge into a list where its cursor belongs, unless the list has its entry or will get it with a later page.
 * Return true if the list has changed. `id` is the id of the timeline or of the thread's post. The entry must be in the
 * cache, and all edges must select `cursor`.
 */
export function addEdge(cache: ApolloCache, id: string, { cursor, node }: Edge): boolean {
  const entry = cache.identify({ __typename: node.__typename ?? "Post", id: node.id });
  if (entry === undefined) return false;
  return changeEdges(cache, id, ({ edges, pageInfo }, { edgeType }) => {
    const index = indexFor({ id: entry, cursor }, { ...pageInfo, edges: listed(edges) });
    if (index === undefined) return edges;
    return withItemAt(edges, index, { __typename: edgeType, cursor, node: { __ref: entry } });
  });
}

/**
 * Remove a post and its reposts from a list, and the post from the cache. Return true if the list has changed.
 *
 * The reposts must have been fetched with `post { id }`.
 */
export function removePost(cache: ApolloCache, id: string, postId: string): boolean {
  const post = cache.identify({ __typename: "Post", id: postId });
  const hasChanged = changeEdges(cache, id, ({ edges }, list) =>
    edges.filter(({ node }) => {
      const reposted = list.repostedPost(node);
      // null if the post was already removed from the cache: for another list, or after a mutation
      return node.__ref !== post && reposted !== null && reposted?.__ref !== post;
    }),
  );
  if (post !== undefined) cache.evict({ id: post });
  return hasChanged;
}

/** Remove a repost from a timeline and from the cache. Return true if the list has changed. */
export function removeRepost(cache: ApolloCache, id: string, repostId: string): boolean {
  const repost = cache.identify({ __typename: "Repost", id: repostId });
  const hasChanged = changeEdges(cache, id, ({ edges }) => edges.filter(({ node }) => node.__ref !== repost));
  if (repost !== undefined) cache.evict({ id: repost });
  return hasChanged;
}

/**
 * Remove a user's posts and reposts from a list. Return true if the list has changed.
 *
 * The entries must have been fetched with `author { id }`.
 */
export function removeAuthor(cache: ApolloCache, id: string, authorId: string): boolean {
  return changeEdges(cache, id, ({ edges }, list) => edges.filter(({ node }) => list.author(node) !== authorId));
}

/**
 * Remove the posts and reposts of a newly hidden user, and reposts of the user's posts, from a list. Return true if
 * the list has changed.
 *
 * The entries must have been fetched with `author { id }`, and reposts with `post { author { id } }`. Quotes stay:
 * their `quotedPost` is null when they are fetched again.
 */
export function hideAuthor(cache: ApolloCache, id: string, userId: string): boolean {
  return changeEdges(cache, id, ({ edges }, list) =>
    edges.filter(({ node }) => list.author(node) !== userId && list.author(list.repostedPost(node)) !== userId),
  );
}

/**
 * Apply an event to the lists of the object with this id: a timeline, the post of a thread, or the notifications.
 * Return true if a list has changed.
 */
export function applyEvent(cache: ApolloCache, id: string, event: Event): boolean {
  const isAdded = event.__typename === "PostAdded" || event.__typename === "RepostAdded";
  if (isAdded && event.timelineEdge) return addEdge(cache, id, event.timelineEdge);
  if (event.__typename === "ReplyAdded" && event.postEdge) return addEdge(cache, id, event.postEdge);
  if (event.__typename === "PostRemoved" && event.postId) return removePost(cache, id, event.postId);
  if (event.__typename === "RepostRemoved" && event.repostId) return removeRepost(cache, id, event.repostId);
  if (event.__typename === "AuthorRemoved" && event.userId) return removeAuthor(cache, id, event.userId);
  if (event.__typename === "AuthorHidden" && event.userId) return hideAuthor(cache, id, event.userId);
  if (event.__typename === "NotificationAdded" && event.edge) return addNotification(cache, id, event.edge);
  return false;
}

/**
 * Insert the edge of a `NotificationAdded` into the viewer's notifications, in place of any older edge for the same
 * notification. Return true if a list has changed. Lists of other `kinds` are not changed. The notification must be in
 * the cache, and all edges must select `cursor`.
 */
export function addNotification(cache: ApolloCache, feedId: string, { cursor, node }: Edge): boolean {
  const notification = node.__typename === undefined ? undefined : cache.identify({ ...node });
  if (notification === undefined) return false;
  return change(cache, "NotificationFeed", feedId, ({ edges, pageInfo }, { key, edgeType }) => {
    if (!takes(JSON.parse(key || "{}") as Arguments, node.__typename)) return edges;
    const known = edges.find((each) => each.node.__ref === notification);
    if (known && known.cursor >= cursor) return edges; // the subscription repeats an event that a newer page includes
    const others = edges.filter((each) => each !== known);
    const index = indexFor({ id: notification, cursor }, { ...pageInfo, edges: listed(others) });
    if (index === undefined) return others;
    return withItemAt(others, index, { __typename: edgeType, cursor, node: { __ref: notification } });
  });
}

function listed(edges: readonly StoredEdge[]): ListedEdge[] {
  return edges.map(({ node, cursor }) => ({ id: node.__ref, cursor }));
}

interface List {
  /** What distinguishes the list from other lists of the same owner. */
  key: string;
  edgeType: string;
  /** Return the id of the author of an entry. */
  author(entry: Reference | null | undefined): string | undefined;
  /** Return the post of a repost. Other entries have none. */
  repostedPost(entry: Reference): Reference | null | undefined;
}

type Change = (connection: StoredConnection, list: List) => readonly StoredEdge[];

/** Change the edges of a list, given the id of its timeline or post. Return true if they have changed. */
function changeEdges(cache: ApolloCache, id: string, changed: Change): boolean {
  return OWNERS.map((owner) => change(cache, owner, id, changed)).includes(true);
}

/** Change the edges of the lists of an object. Return true if they have changed. */
function change(cache: ApolloCache, owner: keyof typeof LISTS, ownerId: string, changed: Change): boolean {
  const id = cache.identify({ __typename: owner, id: ownerId });
  if (id === undefined) return false;
  const { field, edgeType } = LISTS[owner];
  let hasChanged = false;
  cache.modify<Record<string, StoredConnection | null>>({
    id,
    fields: {
      [field](existing, { readField, storeFieldName }) {
        const connection = existing as StoredConnection | null;
        if (!connection) return existing;
        const list: List = {
          key: keyOfField(field, storeFieldName),
          edgeType,
          author: (entry) => (entry ? readField<string>("id", readField<Reference>("author", entry)) : undefined),
          repostedPost: (entry) => readField<Reference | null>("post", entry),
        };
        const edges = changed(connection, list);
        const isSame = edges.length === connection.edges.length && edges.every((each, at) => each === connection.edges[at]);
        if (isSame) return existing;
        hasChanged = true;
        return { ...connection, edges };
      },
    },
  });
  return hasChanged;
}
