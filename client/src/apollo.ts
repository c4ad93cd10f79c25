import type { ApolloCache, FieldPolicy, FieldReadFunction, Reference, StoreObject } from "@apollo/client";
import { indexFor, withItemAt } from "./order.js";
import type { Arrived } from "./pages.js";

/** An edge as a subscription returns it, with `__typename` and `id` of its node. */
export interface Edge {
  cursor: string;
  node: { __typename?: string; id: string };
}

/** An event of a home timeline or of notifications, with what a recipe needs of each type. */
export interface Event {
  __typename: string;
  edge?: Edge;
  postId?: string;
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

/** The types of each interface of the schema, which Apollo Client needs to match fragments such as `... on PostAdded`. */
export const possibleTypes = {
  Node: ["Notification", "NotificationFeed", "Post", "Relationship", "SessionInfo", "Timeline", "User", "UserList"],
  NotificationEvent: ["Checkpoint", "Gap", "NotificationAdded", "NotificationsChanged"],
  StreamEvent: ["Checkpoint", "Gap", "PostDeleted", "PostPublished", "UserFollowed", "UserUnfollowed"],
  TextEntity: ["HashtagEntity", "LinkEntity", "MentionEntity"],
  TimelineEvent: ["AuthorAdded", "AuthorHidden", "AuthorRemoved", "Checkpoint", "Gap", "PostAdded", "PostRemoved"],
};

/**
 * Return the policies of a cache. Pass `relayStylePagination()`, which replaces a list with each first page.
 *
 * A next page that arrives after that belongs to the old list and would leave a hole in the new one, so it is ignored.
 * Each event of a subscription replaces the one before. Posts that refer to a removed one stay, without it: a field that
 * led nowhere would make every query with it incomplete, so that Apollo Client fetches the whole page again.
 */
export function typePolicies<Policy extends FieldPolicy>(pagination: Policy) {
  return {
    Timeline: { fields: { posts: continuing(pagination) } },
    NotificationFeed: { fields: { entries: continuing(pagination) } },
    Notification: { fields: { post: nullIfRemoved } },
    Post: { fields: { replyTo: nullIfRemoved, repostOf: nullIfRemoved, thread: nullIfRemoved } },
    Subscription: { fields: { homeTimeline: { merge: false }, notifications: { merge: false }, events: { merge: false } } },
  };
}

const nullIfRemoved: FieldReadFunction<Reference | null> = (post, { canRead }) =>
  post === undefined || canRead(post) ? post : null;

interface Watcher {
  id: string;
  arrived: Arrived;
}

const watchersOf = new WeakMap<ApolloCache, Set<Watcher>>();

/** Call the watchers of the object whose list has this storage, when the page is in the cache completely. */
function reportPage(cache: ApolloCache, list: unknown): void {
  queueMicrotask(() => {
    for (const { id, arrived } of watchersOf.get(cache) ?? []) {
      const liveCursor = cursorOfList(cache, id, list);
      if (liveCursor !== undefined) arrived(liveCursor);
    }
  });
}

/** Return the `liveCursor` of an object if one of its fields has this storage, by which lists differ. */
function cursorOfList(cache: ApolloCache, id: string, list: unknown): string | undefined {
  const found: { isOwn?: boolean; liveCursor?: string } = {};
  cache.modify({
    id,
    fields(value: unknown, { fieldName, storage }) {
      if (storage === list) found.isOwn = true;
      if (fieldName === "liveCursor") found.liveCursor = value as string;
      return value;
    },
  });
  return found.isOwn ? found.liveCursor : undefined;
}

/**
 * Call a function with the `liveCursor` of each first page of an object, a timeline or the notifications, that is written
 * into the cache. Return a function that ends this. Needs the options of `typePolicies`.
 */
export function watchPages(cache: ApolloCache, owner: { __typename: string; id: string }, arrived: Arrived): () => void {
  const watcher = { id: cache.identify(owner) ?? "", arrived };
  const watchers = watchersOf.get(cache) ?? new Set();
  watchersOf.set(cache, watchers.add(watcher));
  return () => void watchers.delete(watcher);
}

function continuing<Policy extends FieldPolicy>(pagination: Policy): Policy {
  const merge = pagination.merge;
  if (typeof merge !== "function") return pagination;
  const mergeContinuing: typeof merge = (existing, incoming, options) => {
    const after: unknown = options.args?.["after"];
    if (!after && !options.args?.["before"]) reportPage(options.cache, options.storage);
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
 * Insert an edge into a timeline where its cursor belongs, unless the timeline has its post or will have it with a next
 * page. Return true if the list has changed. The post must be in the cache, and all edges must select `cursor`.
 */
export function addEdge(cache: ApolloCache, timelineId: string, { cursor, node }: Edge): boolean {
  const post = cache.identify({ __typename: node.__typename ?? "Post", id: node.id });
  if (post === undefined) return false;
  return changeEdges(cache, timelineId, ({ edges, pageInfo }) => {
    const listed = edges.map((each) => ({ post: each.node.__ref, cursor: each.cursor }));
    const index = indexFor({ post, cursor }, { ...pageInfo, edges: listed });
    if (index === undefined) return edges;
    return withItemAt(edges, index, { __typename: "PostEdge", cursor, node: { __ref: post } });
  });
}

/** Remove a post from a timeline and from the cache. Return true if the list has changed. */
export function removePost(cache: ApolloCache, timelineId: string, postId: string): boolean {
  const id = cache.identify({ __typename: "Post", id: postId });
  const hasChanged = changeEdges(cache, timelineId, ({ edges }) => edges.filter((edge) => edge.node.__ref !== id));
  if (id !== undefined) cache.evict({ id });
  return hasChanged;
}

/**
 * Remove an author's posts from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `author { id }`.
 */
export function removeAuthor(cache: ApolloCache, timelineId: string, authorId: string): boolean {
  return changeEdges(cache, timelineId, ({ edges }, read) => edges.filter((edge) => read.author(edge.node) !== authorId));
}

/**
 * Remove the posts of a user who is hidden now, and reposts of them, from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `text`, `author { id }` and `repostOf { author { id } }`. Quotes stay: their
 * `repostOf` is null when they are fetched again.
 */
export function hideAuthor(cache: ApolloCache, timelineId: string, userId: string): boolean {
  return changeEdges(cache, timelineId, ({ edges }, read) => {
    const isRepostOf = (post: Reference) => !read.text(post) && read.originalAuthor(post) === userId;
    return edges.filter(({ node }) => read.author(node) !== userId && !isRepostOf(node));
  });
}

/** Apply an event to the list of the object with this id: a timeline, or the notifications. Return true if it changed. */
export function applyEvent(cache: ApolloCache, id: string, event: Event): boolean {
  if (event.__typename === "PostAdded" && event.edge) return addEdge(cache, id, event.edge);
  if (event.__typename === "PostRemoved" && event.postId) return removePost(cache, id, event.postId);
  if (event.__typename === "AuthorRemoved" && event.userId) return removeAuthor(cache, id, event.userId);
  if (event.__typename === "AuthorHidden" && event.userId) return hideAuthor(cache, id, event.userId);
  if (event.__typename === "NotificationAdded" && event.edge) return addNotification(cache, id, event.edge);
  return false;
}

/**
 * Insert the edge of a `NotificationAdded` into the viewer's notifications, in place of the one that the list has of the
 * same notification. Return true if the list has changed. The notification must be in the cache, and all edges must
 * select `cursor`.
 */
export function addNotification(cache: ApolloCache, feedId: string, { cursor, node }: Edge): boolean {
  const notification = cache.identify({ __typename: "Notification", id: node.id });
  if (notification === undefined) return false;
  return change(cache, { __typename: "NotificationFeed", id: feedId }, "entries", ({ edges, pageInfo }) => {
    const known = edges.find((each) => each.node.__ref === notification);
    if (known && known.cursor >= cursor) return edges; // a subscription repeats what a newer page has
    const others = edges.filter((each) => each !== known);
    const listed = others.map((each) => ({ post: each.node.__ref, cursor: each.cursor }));
    const index = indexFor({ post: notification, cursor }, { ...pageInfo, edges: listed });
    if (index === undefined) return others;
    return withItemAt(others, index, { __typename: "NotificationEdge", cursor, node: { __ref: notification } });
  });
}

interface Read {
  text(post: Reference): string | undefined;
  author(post: Reference | undefined): string | undefined;
  originalAuthor(post: Reference): string | undefined;
}

type Change = (connection: StoredConnection, read: Read) => readonly StoredEdge[];

function changeEdges(cache: ApolloCache, timelineId: string, changed: Change): boolean {
  return change(cache, { __typename: "Timeline", id: timelineId }, "posts", changed);
}

/** Change the edges of a list of an object. Return true if they have changed. */
function change(cache: ApolloCache, owner: StoreObject, list: string, changed: Change): boolean {
  const id = cache.identify(owner);
  if (id === undefined) return false;
  let hasChanged = false;
  cache.modify<Record<string, StoredConnection | null>>({
    id,
    fields: {
      [list](existing, { readField }) {
        const connection = existing as StoredConnection | null;
        if (!connection) return existing;
        const author = (post: Reference | undefined) => readField<string>("id", readField<Reference>("author", post));
        const edges = changed(connection, {
          text: (post) => readField<string>("text", post),
          author,
          originalAuthor: (post) => author(readField<Reference>("repostOf", post)),
        });
        const isSame = edges.length === connection.edges.length && edges.every((each, at) => each === connection.edges[at]);
        if (isSame) return existing;
        hasChanged = true;
        return { ...connection, edges };
      },
    },
  });
  return hasChanged;
}
