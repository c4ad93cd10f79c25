import type { Environment, HandleFieldPayload, RecordProxy, RecordSourceProxy } from "relay-runtime";
import { isFirstPage, takes } from "./lists.js";
import { indexFor, withItemAt } from "./order.js";
import { report, watch } from "./pages.js";
import type { Arrived } from "./pages.js";

interface Handler {
  update: (store: RecordSourceProxy, payload: HandleFieldPayload) => void;
}

/** The field in which the record of a connection stores the `liveCursor` of its first page. */
const LIVE_CURSOR = "__liveCursor";

/**
 * Return a handler provider that keeps the `liveCursor` of the first page of each connection, for `liveCursorOf` and
 * `watchPages`. Pass `DefaultHandlerProvider`. The fragment of a list must select `liveCursor` with the arguments of
 * the connection; it is null for later pages.
 */
export function withLiveCursors<H extends Handler | undefined>(
  provider: (handle: string) => H,
): (handle: string) => H | Handler {
  return (handle) => {
    const handler = provider(handle);
    return handle === "connection" && handler ? keepingCursors(handler) : handler;
  };
}

function keepingCursors(connections: Handler): Handler {
  return {
    update(store, payload) {
      const owner = store.get(payload.dataID);
      const isUnreadable = owner?.getLinkedRecord(payload.fieldKey) == null;
      if (isUnreadable && owner?.getLinkedRecord(payload.handleKey)) return; // keep the list
      connections.update(store, payload);
      const connection = owner?.getLinkedRecord(payload.handleKey);
      const liveCursor: unknown = isFirstPage(payload.args) && owner?.getValue("liveCursor", payload.args);
      if (!connection || typeof liveCursor !== "string") return;
      connection.setValue(liveCursor, LIVE_CURSOR);
      report(connection.getDataID(), liveCursor);
    },
  };
}

/** Return the `liveCursor` of the first page of a connection. Requires `withLiveCursors`. */
export function liveCursorOf(environment: Environment, connectionId: string): string | undefined {
  return environment.getStore().getSource().get(connectionId)?.[LIVE_CURSOR] as string | undefined;
}

/**
 * Call a function with the `liveCursor` of each first page of a connection that is written into a store. Return a
 * function that stops watching. Requires `withLiveCursors`.
 */
export function watchPages(connectionId: string, arrived: Arrived): () => void {
  return watch(connectionId, arrived);
}

/**
 * Insert an edge into a connection where its cursor belongs, unless the connection has its entry or will get it with a
 * later page. Return true if the connection has changed. The edge must select `cursor`.
 */
export function addEdge(store: RecordSourceProxy, connectionId: string, edge: RecordProxy | null | undefined): boolean {
  const connection = store.get(connectionId);
  const entry = edge?.getLinkedRecord("node")?.getDataID();
  if (!connection || !edge || entry === undefined) return false;
  const edges = connection.getLinkedRecords("edges") ?? [];
  const pageInfo = connection.getLinkedRecord("pageInfo");
  const index = indexFor(
    { id: entry, cursor: String(edge.getValue("cursor")) },
    {
      edges: edges.map((each) => ({
        id: each?.getLinkedRecord("node")?.getDataID() ?? "",
        cursor: each?.getValue("cursor") as string | undefined,
      })),
      endCursor: pageInfo?.getValue("endCursor") as string | null | undefined,
      hasNextPage: pageInfo?.getValue("hasNextPage") as boolean | null | undefined,
    },
  );
  if (index === undefined) return false;
  // The next event overwrites the record of its edge, so the connection gets a copy.
  const id = `${connectionId}:live:${entry}`;
  const copy = store.get(id) ?? store.create(id, edge.getType());
  copy.copyFieldsFrom(edge);
  connection.setLinkedRecords(withItemAt(edges, index, copy), "edges");
  return true;
}

/**
 * Remove a post and its reposts from a connection. Return true if the connection has changed.
 *
 * Quotes and replies stay, but no longer refer to the post: a quote does not show a deleted post. The reposts
 * must have been fetched with `post { id }`.
 */
export function removePost(store: RecordSourceProxy, connectionId: string, postId: string): boolean {
  for (const edge of store.get(connectionId)?.getLinkedRecords("edges") ?? []) {
    const node = edge?.getLinkedRecord("node");
    for (const post of [node, repostedPost(node)])
      for (const field of ["replyTo", "quotedPost", "threadRoot"])
        if (post?.getLinkedRecord(field)?.getDataID() === postId) post.setValue(null, field);
  }
  return keepNodes(
    store,
    connectionId,
    (node) => node.getDataID() !== postId && repostedPost(node)?.getDataID() !== postId,
  );
}

/** Remove a repost from a connection. Return true if the connection has changed. */
export function removeRepost(store: RecordSourceProxy, connectionId: string, repostId: string): boolean {
  return keepNodes(store, connectionId, (node) => node.getDataID() !== repostId);
}

/**
 * Remove a user's posts and reposts from a connection. Return true if the connection has changed.
 *
 * The entries must have been fetched with `author { id }`.
 */
export function removeAuthor(store: RecordSourceProxy, connectionId: string, authorId: string): boolean {
  return keepNodes(store, connectionId, (node) => authorOf(node) !== authorId);
}

/**
 * Remove the posts and reposts of a newly hidden user, and reposts of the user's posts, from a connection. Return true
 * if it has changed.
 *
 * The entries must have been fetched with `author { id }`, and reposts with `post { author { id } }`. Quotes stay:
 * their `quotedPost` is null when they are fetched again.
 */
export function hideAuthor(store: RecordSourceProxy, connectionId: string, userId: string): boolean {
  return keepNodes(
    store,
    connectionId,
    (node) => authorOf(node) !== userId && authorOf(repostedPost(node)) !== userId,
  );
}

function repostedPost(entry: RecordProxy | null | undefined): RecordProxy | null | undefined {
  return entry?.getType() === "Repost" ? entry.getLinkedRecord("post") : undefined;
}

function authorOf(entry: RecordProxy | null | undefined): string | undefined {
  return entry?.getLinkedRecord("author")?.getDataID();
}

/**
 * Insert the edge of a `NotificationAdded` into a connection, in place of any older edge for the same notification.
 * Return true if the connection has changed. The edge must select `cursor`. Pass the `kinds` of the list if it has any.
 */
export function addNotification(
  store: RecordSourceProxy,
  connectionId: string,
  edge: RecordProxy | null | undefined,
  kinds?: readonly string[] | null,
): boolean {
  const node = edge?.getLinkedRecord("node");
  if (!edge || !node || !takes({ kinds }, node.getType())) return false;
  const id = node.getDataID();
  const edges = store.get(connectionId)?.getLinkedRecords("edges") ?? [];
  const known = edges.find((each) => each?.getLinkedRecord("node")?.getDataID() === id);
  if (known && String(known.getValue("cursor")) >= String(edge.getValue("cursor"))) return false;
  const isRemoved = keepNodes(store, connectionId, (other) => other.getDataID() !== id);
  return addEdge(store, connectionId, edge) || isRemoved;
}

/**
 * Apply an event of a timeline, a thread or the notifications to a connection. Return true if the connection has
 * changed.
 *
 * Call it in the updater of a subscription with the record of its root field, and with the `kinds` of the list if it
 * has any. The subscription selects `timelineEdge` in `PostAdded` and `RepostAdded`, `postEdge` in `ReplyAdded` and
 * `edge` in `NotificationAdded`, with `cursor` and `node { id }`; `postId` in `PostRemoved`, `repostId` in
 * `RepostRemoved`, and `userId` in `AuthorRemoved` and `AuthorHidden`.
 */
export function applyEvent(
  store: RecordSourceProxy,
  connectionId: string,
  event: RecordProxy | null | undefined,
  kinds?: readonly string[] | null,
): boolean {
  switch (event?.getValue("__typename") ?? event?.getType()) {
    case "PostAdded":
    case "RepostAdded":
      return addEdge(store, connectionId, event?.getLinkedRecord("timelineEdge"));
    case "ReplyAdded":
      return addEdge(store, connectionId, event?.getLinkedRecord("postEdge"));
    case "PostRemoved":
      return removePost(store, connectionId, String(event?.getValue("postId")));
    case "RepostRemoved":
      return removeRepost(store, connectionId, String(event?.getValue("repostId")));
    case "AuthorRemoved":
      return removeAuthor(store, connectionId, String(event?.getValue("userId")));
    case "AuthorHidden":
      return hideAuthor(store, connectionId, String(event?.getValue("userId")));
    case "NotificationAdded":
      return addNotification(store, connectionId, event?.getLinkedRecord("edge"), kinds);
    default:
      return false;
  }
}

function keepNodes(store: RecordSourceProxy, connectionId: string, keep: (node: RecordProxy) => boolean): boolean {
  const connection = store.get(connectionId);
  const edges = connection?.getLinkedRecords("edges");
  if (!connection || !edges) return false;
  const kept = edges.filter((edge) => {
    const node = edge?.getLinkedRecord("node");
    return node != null && keep(node);
  });
  if (kept.length === edges.length) return false;
  connection.setLinkedRecords(kept, "edges");
  return true;
}
