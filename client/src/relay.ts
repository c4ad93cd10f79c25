import type { HandleFieldPayload, RecordProxy, RecordSourceProxy } from "relay-runtime";
import { indexFor, withItemAt } from "./order.js";
import { report, watch } from "./pages.js";
import type { Arrived } from "./pages.js";

/**
 * A handler for the environment's `handlerProvider`, which `watchPages` needs. It handles the field of first pages
 * `liveCursor @__clientField(handle: "page")`.
 */
export const pageHandler = {
  update(store: RecordSourceProxy, { dataID, fieldKey, handleKey }: HandleFieldPayload): void {
    const owner = store.get<{ liveCursor: string }>(dataID);
    const liveCursor = owner?.getValue(fieldKey) as string | undefined;
    if (!owner || liveCursor === undefined) return;
    owner.setValue(liveCursor, handleKey);
    report(dataID, liveCursor);
  },
};

/**
 * Call a function with the `liveCursor` of each first page of an object, a timeline or the notifications with this id,
 * that is written into a store. Return a function that ends this. Needs `pageHandler`.
 */
export function watchPages(id: string, arrived: Arrived): () => void {
  return watch(id, arrived);
}

/**
 * Insert an edge into a connection where its cursor belongs, unless the connection has its post or will have it with a
 * next page. Return true if the connection has changed. The edge must select `cursor`.
 */
export function addEdge(store: RecordSourceProxy, connectionId: string, edge: RecordProxy | null | undefined): boolean {
  const connection = store.get(connectionId);
  const post = edge?.getLinkedRecord("node")?.getDataID();
  if (!connection || !edge || post === undefined) return false;
  const edges = connection.getLinkedRecords("edges") ?? [];
  const pageInfo = connection.getLinkedRecord("pageInfo");
  const index = indexFor(
    { post, cursor: String(edge.getValue("cursor")) },
    {
      edges: edges.map((each) => ({
        post: each?.getLinkedRecord("node")?.getDataID() ?? "",
        cursor: each?.getValue("cursor") as string | undefined,
      })),
      endCursor: pageInfo?.getValue("endCursor") as string | null | undefined,
      hasNextPage: pageInfo?.getValue("hasNextPage") as boolean | null | undefined,
    },
  );
  if (index === undefined) return false;
  // The next event overwrites the record of its edge, so the connection gets a copy.
  const id = `${connectionId}:live:${post}`;
  const copy = store.get(id) ?? store.create(id, edge.getType());
  copy.copyFieldsFrom(edge);
  connection.setLinkedRecords(withItemAt(edges, index, copy), "edges");
  return true;
}

/**
 * Remove a post from a connection. Return true if the connection has changed.
 *
 * Its entries that refer to the post stay, without it: a quote of a deleted post shows no text of it.
 */
export function removePost(store: RecordSourceProxy, connectionId: string, postId: string): boolean {
  for (const edge of store.get(connectionId)?.getLinkedRecords("edges") ?? []) {
    const node = edge?.getLinkedRecord("node");
    for (const field of ["replyTo", "repostOf", "thread"])
      if (node?.getLinkedRecord(field)?.getDataID() === postId) node.setValue(null, field);
  }
  return keepNodes(store, connectionId, (post) => post.getDataID() !== postId);
}

/**
 * Remove an author's posts from a connection. Return true if the connection has changed.
 *
 * The posts must have been fetched with `author { id }`.
 */
export function removeAuthor(store: RecordSourceProxy, connectionId: string, authorId: string): boolean {
  return keepNodes(store, connectionId, (post) => post.getLinkedRecord("author")?.getDataID() !== authorId);
}

/**
 * Remove the posts of a user who is hidden now, and reposts of them, from a connection. Return true if it has changed.
 *
 * The posts must have been fetched with `text`, `author { id }` and `repostOf { author { id } }`. Quotes stay: their
 * `repostOf` is null when they are fetched again.
 */
export function hideAuthor(store: RecordSourceProxy, connectionId: string, userId: string): boolean {
  const authorOf = (post: RecordProxy | null | undefined) => post?.getLinkedRecord("author")?.getDataID();
  return keepNodes(store, connectionId, (post) => {
    const isRepost = !post.getValue("text") && authorOf(post.getLinkedRecord("repostOf")) === userId;
    return authorOf(post) !== userId && !isRepost;
  });
}

/**
 * Apply an event of a home timeline to a connection. Return true if the connection has changed.
 *
 * Call it in the updater of a subscription with the record of its root field. The subscription selects `edge`, `cursor`
 * and `node { id }` in `PostAdded`, `postId` in `PostRemoved`, and `userId` in `AuthorRemoved` and
 * `AuthorHidden`.
 */
export function applyEvent(
  store: RecordSourceProxy,
  connectionId: string,
  event: RecordProxy | null | undefined,
): boolean {
  switch (event?.getValue("__typename") ?? event?.getType()) {
    case "PostAdded":
      return addEdge(store, connectionId, event?.getLinkedRecord("edge"));
    case "PostRemoved":
      return removePost(store, connectionId, String(event?.getValue("postId")));
    case "AuthorRemoved":
      return removeAuthor(store, connectionId, String(event?.getValue("userId")));
    case "AuthorHidden":
      return hideAuthor(store, connectionId, String(event?.getValue("userId")));
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
