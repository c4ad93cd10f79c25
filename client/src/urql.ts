import type { Cache, KeyingConfig, Link, UpdatesConfig } from "@urql/exchange-graphcache";
import { indexFor, withItemAt } from "./order.js";

/**
 * The keys of the types without ids. An edge has its cursor, so that the edge of an event is kept when the next event
 * arrives. Select `cursor` in all edges.
 */
export const keys: KeyingConfig = {
  PostEdge: ({ cursor }) => (typeof cursor === "string" ? cursor : null),
  PostConnection: () => null,
  PageInfo: () => null,
  Location: () => null,
  FollowConnection: () => null,
  FollowEdge: () => null,
  UserErrorParam: () => null,
  UserError: () => null,
};

/** An event of a home timeline, with what a recipe needs of each type. */
export interface Event {
  __typename: string;
  edge?: { __typename?: string; cursor: string; node: { id: string } };
  postId?: string;
  userId?: string;
}

/**
 * Updates that apply the events of the subscription `homeTimeline` to the viewer's home timeline, and that keep the
 * pages of timelines consistent: a new first page drops the other pages, and a next page that does not continue the list
 * is dropped.
 *
 * The query of the first page must select the ids of the viewer and of the timeline.
 */
export const updates: UpdatesConfig = {
  Subscription: {
    homeTimeline(result, _args, cache) {
      const id = homeTimelineId(cache);
      if (id !== undefined) applyEvent(cache, id, result["homeTimeline"] as unknown as Event);
    },
  },
  Timeline: {
    posts(_result, args, cache, info) {
      if (args["before"]) return;
      if (args["after"]) dropUnlessContinuing(cache, info.parentKey, args["after"] as string);
      else dropNextPages(cache, info.parentKey);
    },
  },
};

function homeTimelineId(cache: Cache): string | undefined {
  const viewer = cache.resolve("Query", "viewer");
  const timeline = typeof viewer === "string" ? cache.resolve(viewer, "homeTimeline") : undefined;
  const id = typeof timeline === "string" ? cache.resolve(timeline, "id") : undefined;
  return typeof id === "string" ? id : undefined;
}

/** Apply an event to a timeline. Call it in an update of the subscription. Return true if the list has changed. */
export function applyEvent(cache: Cache, timelineId: string, event: Event): boolean {
  if (event.__typename === "PostAdded" && event.edge) return addEdge(cache, timelineId, event.edge);
  if (event.__typename === "PostRemoved" && event.postId) return removePost(cache, timelineId, event.postId);
  if (event.__typename === "AuthorRemoved" && event.userId) return removeAuthor(cache, timelineId, event.userId);
  if (event.__typename === "AuthorHidden" && event.userId) return hideAuthor(cache, timelineId, event.userId);
  return false;
}

/**
 * Insert an edge into a timeline where its cursor belongs, unless the timeline has its post or will have it with a next
 * page. Return true if the list has changed.
 */
export function addEdge(cache: Cache, timelineId: string, { cursor, node }: NonNullable<Event["edge"]>): boolean {
  const all = pages(cache, keyOf(cache, "Timeline", timelineId));
  const last = all.at(-1);
  if (!last) return false;
  const listed = all.flatMap(({ edges }) => edges.map((edge) => ({ post: nodeOf(cache, edge), cursor: cursorOf(edge) })));
  const index = indexFor({ post: keyOf(cache, "Post", node.id), cursor }, { ...pageInfo(cache, last), edges: listed });
  if (index === undefined) return false;
  let before = 0;
  for (const { key, edges } of all) {
    if (index <= before + edges.length) {
      cache.link(key, "edges", withItemAt(edges, index - before, `PostEdge:${cursor}`) as Link);
      return true;
    }
    before += edges.length;
  }
  return false;
}

/** Remove a post from a timeline and from the cache. Return true if the list has changed. */
export function removePost(cache: Cache, timelineId: string, postId: string): boolean {
  const post = keyOf(cache, "Post", postId);
  const hasChanged = keepEdges(cache, timelineId, (edge) => nodeOf(cache, edge) !== post);
  cache.invalidate(post);
  return hasChanged;
}

/**
 * Remove an author's posts from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `author { id }`.
 */
export function removeAuthor(cache: Cache, timelineId: string, authorId: string): boolean {
  const author = keyOf(cache, "User", authorId);
  return keepEdges(cache, timelineId, (edge) => cache.resolve(nodeOf(cache, edge), "author") !== author);
}

/**
 * Remove the posts of a user who is hidden now, and reposts of them, from a timeline. Return true if the list has changed.
 *
 * The posts must have been fetched with `text`, `author { id }` and `repostOf { author { id } }`. Quotes stay: their
 * `repostOf` is null when they are fetched again.
 */
export function hideAuthor(cache: Cache, timelineId: string, userId: string): boolean {
  const user = keyOf(cache, "User", userId);
  return keepEdges(cache, timelineId, (edge) => {
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

/** Return the pages of a timeline from the newest to the oldest. */
function pages(cache: Cache, timeline: string): Page[] {
  return cache
    .inspectFields(timeline)
    .filter((field) => field.fieldName === "posts" && !field.arguments?.["before"])
    .flatMap((field) => {
      const key = cache.resolve(timeline, field.fieldKey);
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

function cursorOf(edge: string): string {
  return edge.slice("PostEdge:".length);
}

function keepEdges(cache: Cache, timelineId: string, keep: (edge: string) => boolean): boolean {
  let hasChanged = false;
  for (const { key, edges } of pages(cache, keyOf(cache, "Timeline", timelineId))) {
    const kept = edges.filter(keep);
    if (kept.length === edges.length) continue;
    cache.link(key, "edges", kept as Link);
    hasChanged = true;
  }
  return hasChanged;
}

function dropNextPages(cache: Cache, timeline: string): void {
  for (const page of pages(cache, timeline)) {
    if (page.after) cache.invalidate(timeline, "posts", page.arguments as never);
  }
}

function dropUnlessContinuing(cache: Cache, timeline: string, after: string): void {
  const all = pages(cache, timeline);
  const isNext = all.some(
    (page) =>
      page.after !== after && (page.edges.at(-1) === `PostEdge:${after}` || pageInfo(cache, page).endCursor === after),
  );
  if (isNext) return;
  for (const page of all) {
    if (page.after === after) cache.invalidate(timeline, "posts", page.arguments as never);
  }
}

function keyOf(cache: Cache, __typename: string, id: string): string {
  return cache.keyOfEntity({ __typename, id }) ?? `${__typename}:${id}`;
}
