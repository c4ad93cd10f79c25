import type { Cache, KeyingConfig, Link, UpdateResolver, UpdatesConfig } from "@urql/exchange-graphcache";
import { indexFor, withItemAt } from "./order.js";
import { report, watch } from "./pages.js";
import type { Arrived } from "./pages.js";

/**
 * The keys of the types without ids. An edge has its cursor, so that the edge of an event is kept when the next event
 * arrives. Select `cursor` in all edges.
 */
export const keys: KeyingConfig = {
  PostEdge: ({ cursor }) => (typeof cursor === "string" ? cursor : null),
  NotificationEdge: ({ cursor }) => (typeof cursor === "string" ? cursor : null),
  PostConnection: () => null,
  NotificationConnection: () => null,
  PageInfo: () => null,
  Location: () => null,
  FollowConnection: () => null,
  FollowEdge: () => null,
  UserErrorParam: () => null,
  UserError: () => null,
};

/** An event of a home timeline or of notifications, with what a recipe needs of each type. */
export interface Event {
  __typename: string;
  edge?: { __typename?: string; cursor: string; node: { id: string } };
  postId?: string;
  userId?: string;
}

/**
 * Updates that apply the events of the subscriptions `homeTimeline` and `notifications` to the viewer's home timeline and
 * notifications, and that keep the pages of both consistent: a new first page drops the other pages, and a next page that
 * does not continue the list is dropped.
 *
 * The query of the first page must select the ids of the viewer and of the timeline, or of the notifications.
 */
export const updates: UpdatesConfig = {
  Subscription: {
    homeTimeline(result, _args, cache) {
      const id = homeTimelineId(cache);
      if (id !== undefined) applyEvent(cache, id, result["homeTimeline"] as unknown as Event);
    },
    notifications(result, _args, cache) {
      const id = idOf(cache, cache.resolve("Query", "notifications"));
      if (id !== undefined) applyEvent(cache, id, result["notifications"] as unknown as Event);
    },
  },
  Timeline: { posts: keepPages("posts", "PostEdge") },
  NotificationFeed: { entries: keepPages("entries", "NotificationEdge") },
};

/**
 * Call a function with the `liveCursor` of each first page of an object, a timeline or the notifications, that is written
 * into a cache of the page. Return a function that ends this. Needs the option `updates`.
 */
export function watchPages({ __typename, id }: { __typename: string; id: string }, arrived: Arrived): () => void {
  return watch(`${__typename}:${id}`, arrived);
}

/** A list of an object, and the type of its edges. */
interface List {
  owner: string;
  field: "posts" | "entries";
  edge: "PostEdge" | "NotificationEdge";
}

function keepPages(field: List["field"], edge: List["edge"]): UpdateResolver {
  return (result, args, cache, info) => {
    const list: List = { owner: info.parentKey, field, edge };
    if (args["before"]) return;
    if (args["after"]) {
      dropUnlessContinuing(cache, list, args["after"] as string);
    } else {
      dropNextPages(cache, list);
      const liveCursor = result["liveCursor"] ?? cache.resolve(list.owner, "liveCursor");
      if (typeof liveCursor === "string") report(list.owner, liveCursor);
    }
  };
}

function homeTimelineId(cache: Cache): string | undefined {
  const viewer = cache.resolve("Query", "viewer");
  const timeline = typeof viewer === "string" ? cache.resolve(viewer, "homeTimeline") : undefined;
  return idOf(cache, timeline);
}

function idOf(cache: Cache, key: unknown): string | undefined {
  const id = typeof key === "string" ? cache.resolve(key, "id") : undefined;
  return typeof id === "string" ? id : undefined;
}

function timelineOf(cache: Cache, id: string): List {
  return { owner: keyOf(cache, "Timeline", id), field: "posts", edge: "PostEdge" };
}

function notificationsOf(cache: Cache, feedId: string): List {
  return { owner: keyOf(cache, "NotificationFeed", feedId), field: "entries", edge: "NotificationEdge" };
}

/**
 * Apply an event to the list of the object with this id: a timeline, or the notifications. Call it in an update of the
 * subscription. Return true if the list has changed.
 */
export function applyEvent(cache: Cache, id: string, event: Event): boolean {
  if (event.__typename === "PostAdded" && event.edge) return addEdge(cache, id, event.edge);
  if (event.__typename === "PostRemoved" && event.postId) return removePost(cache, id, event.postId);
  if (event.__typename === "AuthorRemoved" && event.userId) return removeAuthor(cache, id, event.userId);
  if (event.__typename === "AuthorHidden" && event.userId) return hideAuthor(cache, id, event.userId);
  if (event.__typename === "NotificationAdded" && event.edge) return addNotification(cache, id, event.edge);
  return false;
}

/**
 * Insert an edge into a timeline where its cursor belongs, unless the timeline has its post or will have it with a next
 * page. Return true if the list has changed.
 */
export function addEdge(cache: Cache, timelineId: string, { cursor, node }: NonNullable<Event["edge"]>): boolean {
  return insert(cache, timelineOf(cache, timelineId), keyOf(cache, "Post", node.id), cursor);
}

/**
 * Insert the edge of a `NotificationAdded` into the viewer's notifications, in place of the one that the list has of the
 * same notification. Return true if the list has changed.
 */
export function addNotification(cache: Cache, feedId: string, { cursor, node }: NonNullable<Event["edge"]>): boolean {
  const list = notificationsOf(cache, feedId);
  const notification = keyOf(cache, "Notification", node.id);
  const isOther = (edge: string): boolean => nodeOf(cache, edge) !== notification;
  const known = pages(cache, list).flatMap(({ edges }) => edges).find((edge) => !isOther(edge));
  if (known !== undefined && cursorOf(list, known) >= cursor) return false; // repeated: a newer page has it
  const isRemoved = keepEdges(cache, list, isOther);
  return insert(cache, list, notification, cursor) || isRemoved;
}

function insert(cache: Cache, list: List, node: string, cursor: string): boolean {
  const all = pages(cache, list);
  const last = all.at(-1);
  if (!last) return false;
  const listed = all.flatMap(({ edges }) => edges.map((edge) => ({ post: nodeOf(cache, edge), cursor: cursorOf(list, edge) })));
  const index = indexFor({ post: node, cursor }, { ...pageInfo(cache, last), edges: listed });
  if (index === undefined) return false;
  let before = 0;
  for (const { key, edges } of all) {
    if (index <= before + edges.length) {
      cache.link(key, "edges", withItemAt(edges, index - before, `${list.edge}:${cursor}`) as Link);
      return true;
    }
    before += edges.length;
  }
  return false;
}

/**
 * Remove a post from a timeline and from the cache. Return true if the list has changed.
 *
 * The entries of the timeline and of the notifications that refer to it stay, without it: a field that led nowhere would
 * make Graphcache fetch the first page again, which drops the next pages and what the subscription added meanwhile.
 */
export function removePost(cache: Cache, timelineId: string, postId: string): boolean {
  const post = keyOf(cache, "Post", postId);
  const timeline = timelineOf(cache, timelineId);
  const hasChanged = keepEdges(cache, timeline, (edge) => nodeOf(cache, edge) !== post);
  unlink(cache, timeline, ["replyTo", "repostOf", "thread"], post);
  const feedId = idOf(cache, cache.resolve("Query", "notifications"));
  if (feedId !== undefined) unlink(cache, notificationsOf(cache, feedId), ["post"], post);
  cache.invalidate(post);
  return hasChanged;
}

/** Make fields of the entries of a list null where they lead to a post. */
function unlink(cache: Cache, list: List, fields: readonly string[], post: string): void {
  for (const edge of pages(cache, list).flatMap(({ edges }) => edges)) {
    const node = nodeOf(cache, edge);
    for (const field of fields) if (cache.resolve(node, field) === post) cache.link(node, field, null);
  }
}

/**
 * Remove an author's posts from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `author { id }`.
 */
export function removeAuthor(cache: Cache, timelineId: string, authorId: string): boolean {
  const author = keyOf(cache, "User", authorId);
  return keepEdges(cache, timelineOf(cache, timelineId), (edge) => cache.resolve(nodeOf(cache, edge), "author") !== author);
}

/**
 * Remove the posts of a user who is hidden now, and reposts of them, from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `text`, `author { id }` and `repostOf { author { id } }`. Quotes stay: their
 * `repostOf` is null when they are fetched again.
 */
export function hideAuthor(cache: Cache, timelineId: string, userId: string): boolean {
  const user = keyOf(cache, "User", userId);
  return keepEdges(cache, timelineOf(cache, timelineId), (edge) => {
    const post = nodeOf(cache, edge);
    const original = cache.resolve(post, "repostOf");
    const isRepost = typeof original === "string" && !cache.resolve(post, "text");
    return cache.resolve(post, "author") !== user && !(isRepost && cache.resolve(original, "author") === user);
  });
}

interface Page {
  /** The key of the connection. */
  key: string;
  arguments: Record<string, unknown> | null;
  after: string | null | undefined;
  edges: string[];
}

/** Return the pages of a list from the newest to the oldest. */
function pages(cache: Cache, { owner, field: name }: List): Page[] {
  return cache
    .inspectFields(owner)
    .filter((field) => field.fieldName === name && !field.arguments?.["before"])
    .flatMap((field) => {
      const key = cache.resolve(owner, field.fieldKey);
      if (typeof key !== "string") return [];
      const edges = cache.resolve(key, "edges");
      const after = field.arguments?.["after"] as string | null | undefined;
      return [{ key, arguments: field.arguments, after, edges: Array.isArray(edges) ? (edges as string[]) : [] }];
    })
    .sort((one, other) => (!one.after ? -1 : !other.after ? 1 : one.after > other.after ? -1 : 1));
}

function pageInfo(cache: Cache, page: Page): { endCursor?: string; hasNextPage?: boolean } {
  const info = cache.resolve(page.key, "pageInfo") as string | undefined;
  if (!info) return {};
  return {
    endCursor: cache.resolve(info, "endCursor") as string,
    hasNextPage: cache.resolve(info, "hasNextPage") as boolean,
  };
}

function nodeOf(cache: Cache, edge: string): string {
  return cache.resolve(edge, "node") as string;
}

function cursorOf(list: List, edge: string): string {
  return edge.slice(`${list.edge}:`.length);
}

function keepEdges(cache: Cache, list: List, keep: (edge: string) => boolean): boolean {
  let hasChanged = false;
  for (const { key, edges } of pages(cache, list)) {
    const kept = edges.filter(keep);
    if (kept.length === edges.length) continue;
    cache.link(key, "edges", kept as Link);
    hasChanged = true;
  }
  return hasChanged;
}

function dropNextPages(cache: Cache, list: List): void {
  for (const page of pages(cache, list)) {
    if (page.after) cache.invalidate(list.owner, list.field, page.arguments as never);
  }
}

function dropUnlessContinuing(cache: Cache, list: List, after: string): void {
  const all = pages(cache, list);
  const isNext = all.some(
    (page) =>
      page.after !== after && (page.edges.at(-1) === `${list.edge}:${after}` || pageInfo(cache, page).endCursor === after),
  );
  if (isNext) return;
  for (const page of all) {
    if (page.after === after) cache.invalidate(list.owner, list.field, page.arguments as never);
  }
}

function keyOf(cache: Cache, __typename: string, id: string): string {
  return cache.keyOfEntity({ __typename, id }) ?? `${__typename}:${id}`;
}
