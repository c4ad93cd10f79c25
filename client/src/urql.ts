import type {
  Cache,
  Data,
  FieldInfo,
  Link,
  Resolver,
  ResolverConfig,
  UpdateResolver,
  UpdatesConfig,
} from "@urql/exchange-graphcache";
export { keys } from "./keys.js";
import { LISTS, OWNERS, isFirstPage, isPage, listKey, takes } from "./lists.js";
import type { Arguments } from "./lists.js";
import { indexFor, withItemAt } from "./order.js";
import { report, watch } from "./pages.js";
import type { Arrived, Owner } from "./pages.js";

/** An edge as a subscription returns it, with `__typename` and `id` of its node. */
export interface Edge {
  __typename?: string;
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

/**
 * Updates that apply the events of subscriptions to the viewer's home timeline, to other timelines, to the replies of
 * threads and to the notifications, and that keep the pages of these lists consistent: a new first page drops the other
 * pages, and a next page that does not continue the list is dropped. Notifications of other `kinds` are a separate
 * list.
 *
 * The query of the list must select the id of the timeline, of the post, or of the notifications.
 */
export const updates: UpdatesConfig = {
  Subscription: {
    homeTimeline(result, _args, cache) {
      const id = idOf(cache, ofViewer(cache, "homeTimeline"));
      if (id !== undefined) applyEvent(cache, id, result["homeTimeline"] as unknown as Event);
    },
    timeline(result, { timelineId }, cache) {
      applyEvent(cache, timelineId as string, result["timeline"] as unknown as Event);
    },
    thread(result, { postId }, cache) {
      applyEvent(cache, postId as string, result["thread"] as unknown as Event);
    },
    notifications(result, _args, cache) {
      const id = idOf(cache, ofViewer(cache, "notifications"));
      if (id !== undefined) applyEvent(cache, id, result["notifications"] as unknown as Event);
    },
  },
  Timeline: { entries: keepPages },
  Post: { replies: keepPages },
  NotificationFeed: { entries: keepPages },
};

let isCalled = false;

/** Return whether `resolvers` was called: Graphcache does not reveal its options. */
export function hasResolvers(): boolean {
  return isCalled;
}

/**
 * Return the resolvers of timelines, threads and notifications. Pass `relayPagination()`.
 *
 * A list consists of the first page and the pages that continue it. All of them share the `liveCursor` of the first
 * page.
 */
export function resolvers(pagination: Resolver): ResolverConfig {
  isCalled = true;
  return {
    Timeline: { entries: following(pagination), liveCursor: cursorOfList },
    Post: { replies: following(pagination), liveCursor: cursorOfList },
    NotificationFeed: { entries: following(pagination), liveCursor: cursorOfList },
  };
}

/**
 * Return a resolver that hides the pages that do not belong to the list. Graphcache keeps the order in which queries
 * were sent: a next page that arrives before a first page that was requested earlier stays, although it may not
 * continue the new list.
 */
function following(pagination: Resolver): Resolver {
  return (parent, args, cache, info) => {
    const own = pages(cache, { owner: info.parentKey, args });
    const keys = new Set(own.map(({ key }) => key));
    const isShown = ({ fieldKey }: FieldInfo): boolean => keys.has(`${info.parentKey}.${fieldKey}`);
    const inspectFields: Cache["inspectFields"] = (entity) => cache.inspectFields(entity).filter(isShown);
    const visible = Object.create(cache, { inspectFields: { value: inspectFields } }) as Cache;
    const list = pagination(parent, args, keys.size > 0 ? visible : cache, info) as Data | null | undefined;
    const last = own.at(-1);
    if (!list?.["pageInfo"] || !last || last.edges.length > 0) return list;
    const ends = list["pageInfo"] as Data;
    return { ...list, pageInfo: { ...ends, ...pageInfo(cache, last) } }; // urql has skipped the page, which is empty now
  };
}

const cursorOfList: Resolver = (_parent, args, cache, info) => {
  const own = Object.keys(args).length > 0 ? args : undefined;
  const ofList = isPage(args) ? liveCursorOf(cache, { owner: info.parentKey, args }) : undefined;
  return ofList ?? cache.resolve(info.parentKey, "liveCursor", own);
};

/**
 * Call a function with the `liveCursor` of each first page of a list that is written into any cache of the application.
 * The owner of the list is a timeline, or the notifications with the `kinds` of the list. Return a function that stops
 * watching. Requires the option `updates`.
 */
export function watchPages({ __typename, id, kinds }: Owner, arrived: Arrived): () => void {
  return watch(`${__typename}:${id}${listKey({ kinds })}`, arrived);
}

/** A list of a timeline, a thread or the notifications: the field of its owner with these arguments. */
interface List {
  owner: string;
  args: Arguments;
}

/** Return the field of the owner that contains a list, and the type of the list's edges. */
function shapeOf({ owner }: List): (typeof LISTS)[keyof typeof LISTS] {
  return LISTS[owner.slice(0, owner.indexOf(":")) as keyof typeof LISTS];
}

function keepPages(...[result, args, cache, info]: Parameters<UpdateResolver>): void {
  const list: List = { owner: info.parentKey, args };
  if (!result[shapeOf(list).field]) return; // the server could not read it
  if (!isFirstPage(args)) {
    if (args["after"]) dropUnlessContinuing(cache, list, args["after"] as string);
    return;
  }
  dropOtherPages(cache, list);
  const liveCursor = result["liveCursor"] ?? liveCursorOf(cache, list);
  if (typeof liveCursor === "string") report(`${list.owner}${listKey(args)}`, liveCursor);
}

/** Return the `liveCursor` of the first page of a list. */
function liveCursorOf(cache: Cache, list: List): string | undefined {
  return pages(cache, list)[0]?.liveCursor;
}

function ofViewer(cache: Cache, field: string): unknown {
  const viewer = cache.resolve("Query", "viewer");
  return typeof viewer === "string" ? cache.resolve(viewer, field) : undefined;
}

function idOf(cache: Cache, key: unknown): string | undefined {
  const id = typeof key === "string" ? cache.resolve(key, "id") : undefined;
  return typeof id === "string" ? id : undefined;
}

/** Return the two lists that an id can refer to: the entries of a timeline, and the replies to a post. */
function listsOf(cache: Cache, id: string): List[] {
  return OWNERS.map((owner) => ({ owner: keyOf(cache, owner, id), args: null }));
}

/** Return the lists of notifications that are in the cache: one for each value of `kinds`. */
function notificationsOf(cache: Cache, feedId: string): List[] {
  const owner = keyOf(cache, "NotificationFeed", feedId);
  const lists = new Map<string, List>();
  for (const { fieldName, arguments: args } of cache.inspectFields(owner)) {
    if (fieldName === LISTS.NotificationFeed.field) lists.set(listKey(args), { owner, args });
  }
  return [...lists.values()];
}

/**
 * Apply an event to the lists of the object with this id: a timeline, the post of a thread, or the notifications. Call
 * it in an update of the subscription. Return true if a list has changed.
 */
export function applyEvent(cache: Cache, id: string, event: Event): boolean {
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
 * Insert an edge into a list where its cursor belongs, unless the list has its entry or will get it with a later page.
 * Return true if the list has changed. `id` is the id of the timeline or of the thread's post.
 */
export function addEdge(cache: Cache, id: string, { cursor, node }: Edge): boolean {
  const entry = keyOf(cache, node.__typename ?? "Post", node.id);
  return listsOf(cache, id).map((list) => insert(cache, list, entry, cursor)).includes(true);
}

/**
 * Insert the edge of a `NotificationAdded` into the viewer's notifications, in place of any older edge for the same
 * notification. Return true if a list has changed. Lists of other `kinds` are not changed.
 */
export function addNotification(cache: Cache, feedId: string, { cursor, node }: Edge): boolean {
  const { __typename } = node;
  if (__typename === undefined) return false;
  const notification = keyOf(cache, __typename, node.id);
  let hasChanged = false;
  for (const list of notificationsOf(cache, feedId)) {
    if (!takes(list.args, __typename)) continue;
    const isOther = (edge: string): boolean => nodeOf(cache, edge) !== notification;
    const known = pages(cache, list).flatMap(({ edges }) => edges).find((edge) => !isOther(edge));
    if (known !== undefined && cursorOf(list, known) >= cursor) continue; // repeated: a newer page has it
    const isRemoved = keepEdges(cache, list, isOther);
    hasChanged = insert(cache, list, notification, cursor) || isRemoved || hasChanged;
  }
  return hasChanged;
}

function insert(cache: Cache, list: List, node: string, cursor: string): boolean {
  const all = pages(cache, list);
  const last = all.at(-1);
  if (!last) return false;
  const edges = all.flatMap((page) => page.edges);
  const listed = edges.map((edge) => ({ id: nodeOf(cache, edge), cursor: cursorOf(list, edge) }));
  const index = indexFor({ id: node, cursor }, { ...pageInfo(cache, last), edges: listed });
  if (index === undefined) return false;
  let before = 0;
  for (const { key, edges } of all) {
    if (index <= before + edges.length) {
      cache.link(key, "edges", withItemAt(edges, index - before, edgeOf(list, cursor)) as Link);
      return true;
    }
    before += edges.length;
  }
  return false;
}

/**
 * Remove a post and its reposts from a list, and the post from the cache. Return true if the list has changed.
 *
 * Quotes, replies and notifications stay, but no longer refer to the post: a dangling reference would make Graphcache
 * fetch the first page again, which drops the next pages and the entries that the subscription has added.
 */
export function removePost(cache: Cache, id: string, postId: string): boolean {
  const post = keyOf(cache, "Post", postId);
  const hasChanged = keepNodes(cache, id, (node) => node !== post && cache.resolve(node, "post") !== post);
  for (const list of listsOf(cache, id)) unlink(cache, list, ["replyTo", "quotedPost", "threadRoot"], post);
  const feedId = idOf(cache, ofViewer(cache, "notifications"));
  for (const list of feedId === undefined ? [] : notificationsOf(cache, feedId)) unlink(cache, list, ["post"], post);
  cache.invalidate(post);
  return hasChanged;
}

/** Remove a repost from a timeline and from the cache. Return true if the list has changed. */
export function removeRepost(cache: Cache, id: string, repostId: string): boolean {
  const repost = keyOf(cache, "Repost", repostId);
  const hasChanged = keepNodes(cache, id, (node) => node !== repost);
  cache.invalidate(repost);
  return hasChanged;
}

/** Set the fields that refer to a post to null, in the entries of a list and in the posts that they repost. */
function unlink(cache: Cache, list: List, fields: readonly string[], post: string): void {
  for (const edge of storedPages(cache, list).flatMap(({ edges }) => edges)) {
    const node = nodeOf(cache, edge);
    for (const each of [node, cache.resolve(node, "post")]) {
      if (typeof each !== "string") continue;
      for (const field of fields) if (cache.resolve(each, field) === post) cache.link(each, field, null);
    }
  }
}

/**
 * Remove a user's posts and reposts from a list. Return true if the list has changed.
 *
 * The entries must have been fetched with `author { id }`.
 */
export function removeAuthor(cache: Cache, id: string, authorId: string): boolean {
  const author = keyOf(cache, "User", authorId);
  return keepNodes(cache, id, (node) => cache.resolve(node, "author") !== author);
}

/**
 * Remove the posts and reposts of a newly hidden user, and reposts of the user's posts, from a list. Return true if
 * the list has changed.
 *
 * The entries must have been fetched with `author { id }`, and reposts with `post { author { id } }`. Quotes stay:
 * their `quotedPost` is null when they are fetched again.
 */
export function hideAuthor(cache: Cache, id: string, userId: string): boolean {
  const user = keyOf(cache, "User", userId);
  return keepNodes(cache, id, (node) => {
    const post = cache.resolve(node, "post"); // only reposts have it
    const isRepost = typeof post === "string" && cache.resolve(post, "author") === user;
    return cache.resolve(node, "author") !== user && !isRepost;
  });
}

interface Page {
  /** The key of the connection. */
  key: string;
  arguments: Record<string, unknown> | null;
  after: string | null | undefined;
  liveCursor: string | undefined;
  edges: string[];
}

/** Return the pages of a list from the newest to the oldest: a first page, and those that follow it. */
function pages(cache: Cache, list: List): Page[] {
  const stored = storedPages(cache, list);
  const newest = (one: Page, other: Page): number => ((one.liveCursor ?? "") > (other.liveCursor ?? "") ? -1 : 1);
  const found = stored.filter(({ after }) => !after).sort(newest).slice(0, 1);
  for (const page of found) {
    const ends = [pageInfo(cache, page).endCursor, page.edges.slice(-1).map((edge) => cursorOf(list, edge))[0]];
    const next = stored.find((each) => each.after && ends.includes(each.after) && !found.includes(each));
    if (next) found.push(next); // the loop continues with it
  }
  return found;
}

/** Return all pages of a list that are in the cache, each with the arguments of its request. */
function storedPages(cache: Cache, list: List): Page[] {
  return fieldsOf(cache, list)
    .filter((field) => !field.arguments?.["before"])
    .flatMap((field) => {
      const key = cache.resolve(list.owner, field.fieldKey);
      if (key !== `${list.owner}.${field.fieldKey}`) return []; // no page, or a link to a first page of another size
      const edges = cache.resolve(key, "edges");
      const after = field.arguments?.["after"] as string | null | undefined;
      const liveCursor = cache.resolve(list.owner, "liveCursor", field.arguments) as string | null | undefined;
      const page = { key, arguments: field.arguments, after, liveCursor: liveCursor ?? undefined };
      return [{ ...page, edges: Array.isArray(edges) ? (edges as string[]) : [] }];
    });
}

function fieldsOf(cache: Cache, list: List): FieldInfo[] {
  const isOfList = ({ fieldName, arguments: args }: FieldInfo): boolean =>
    fieldName === shapeOf(list).field && listKey(args) === listKey(list.args);
  return cache.inspectFields(list.owner).filter(isOfList);
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

function edgeOf(list: List, cursor: string): string {
  return `${shapeOf(list).edgeType}:${cursor}`;
}

function cursorOf(list: List, edge: string): string {
  return edge.slice(edgeOf(list, "").length);
}

/** Remove entries from a list, given the id of its timeline or post. Return true if the list has changed. */
function keepNodes(cache: Cache, id: string, keep: (node: string) => boolean): boolean {
  return listsOf(cache, id).map((list) => keepEdges(cache, list, (edge) => keep(nodeOf(cache, edge)))).includes(true);
}

function keepEdges(cache: Cache, list: List, keep: (edge: string) => boolean): boolean {
  let hasChanged = false;
  for (const { key, edges } of storedPages(cache, list)) {
    const kept = edges.filter(keep);
    if (kept.length === edges.length) continue;
    cache.link(key, "edges", kept as Link);
    hasChanged = true;
  }
  return hasChanged;
}

/**
 * Drop all pages of a list except the first page that was requested with the list's arguments. First pages of other
 * sizes become links to this page: if they were missing, Graphcache would fetch them again, and they would replace this
 * page in turn.
 */
function dropOtherPages(cache: Cache, list: List): void {
  const { field } = shapeOf(list);
  const own = cache.resolve(list.owner, field, list.args as never);
  for (const { arguments: args } of fieldsOf(cache, list)) {
    if (!args) continue;
    if (isFirstPage(args)) cache.link(list.owner, field, args as never, own as Link);
    else cache.invalidate(list.owner, field, args);
  }
}

function dropUnlessContinuing(cache: Cache, list: List, after: string): void {
  if (pages(cache, list).some((page) => page.after === after)) return;
  for (const page of storedPages(cache, list)) {
    if (page.after === after) cache.invalidate(list.owner, shapeOf(list).field, page.arguments as never);
  }
}

function keyOf(cache: Cache, __typename: string, id: string): string {
  return cache.keyOfEntity({ __typename, id }) ?? `${__typename}:${id}`;
}
