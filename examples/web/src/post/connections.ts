import { addEdge } from "@fanline/client/relay";
import { ConnectionHandler } from "react-relay";
import { ROOT_ID } from "relay-runtime";
import type { Environment, RecordProxy, RecordSourceProxy } from "relay-runtime";

/** Return those timelines that contain a user's posts and are in the store: the home timeline and the user's own. */
export function timelineConnections(environment: Environment, userId: string): string[] {
  const source = environment.getStore().getSource();
  const refOf = (id: string | undefined, field: string): string | undefined =>
    id === undefined ? undefined : (source.get(id)?.[field] as { __ref?: string } | null | undefined)?.__ref;
  const of = (owner: string | undefined, field: string, key: string): string | undefined => {
    const timeline = refOf(owner, field);
    return timeline && ConnectionHandler.getConnectionID(timeline, key);
  };
  const home = of(refOf(ROOT_ID, "viewer"), "homeTimeline", "HomeFeed_entries");
  const ids = [home, of(userId, "timeline", "ProfilePosts_entries")];
  return ids.filter((id): id is string => id !== undefined && source.has(id));
}

/** Return the list of the replies to a post. */
export function replyConnection(postId: string): string {
  return ConnectionHandler.getConnectionID(postId, "Replies_replies");
}

/**
 * Insert the post of the payload of `publishPost` where it belongs: below its post, and into the timelines of its
 * author.
 */
export function addPost(
  environment: Environment,
  store: RecordSourceProxy,
  payload: RecordProxy | null | undefined,
  userId: string,
): void {
  const parent: unknown = payload?.getLinkedRecord("post")?.getValue("replyToId");
  if (typeof parent === "string") addEdge(store, replyConnection(parent), payload?.getLinkedRecord("postEdge"));
  const edge = payload?.getLinkedRecord("timelineEdge"); // null for a reply that belongs in neither timeline
  if (edge) for (const list of timelineConnections(environment, userId)) addEdge(store, list, edge);
}

/**
 * Insert the post of a `PostAdded` into a list of posts, with the cursor of its timeline edge. Return false if the list
 * already has the post, or will get it with a later page.
 */
export function addPostOf(
  event: RecordProxy | null | undefined,
  store: RecordSourceProxy,
  connectionId: string,
): boolean {
  const connection = store.get(connectionId);
  const post = event?.getLinkedRecord("post");
  const cursor: unknown = event?.getLinkedRecord("timelineEdge")?.getValue("cursor");
  if (!connection || !post || typeof cursor !== "string") return false;
  const edge = ConnectionHandler.createEdge(store, connection, post, "PostEdge");
  edge.setValue(cursor, "cursor");
  return addEdge(store, connectionId, edge);
}

const LISTS = new Set(["TimelineConnection", "PostConnection"]);

/**
 * Remove a deleted post and its reposts, or a repost that was undone, from all lists, and then from the store: quotes
 * of a deleted post show that it is not available.
 *
 * Lists come first: an edge without its node is not allowed.
 */
export function forget(environment: Environment, store: RecordSourceProxy, entryId: string): void {
  const source = environment.getStore().getSource();
  for (const id of source.getRecordIDs()) {
    if (!LISTS.has(String(source.get(id)?.["__typename"]))) continue;
    const connection = store.get(id);
    const edges = connection?.getLinkedRecords("edges");
    const kept = edges?.filter((edge) => !isOf(edge.getLinkedRecord("node"), entryId));
    if (kept && kept.length !== edges?.length) connection?.setLinkedRecords(kept, "edges");
  }
  store.delete(entryId);
}

/** Return whether a list has a post or a repost of it. */
export function shows(store: RecordSourceProxy, connectionId: string, postId: string): boolean {
  const edges = store.get(connectionId)?.getLinkedRecords("edges") ?? [];
  return edges.some((edge) => isOf(edge.getLinkedRecord("node"), postId));
}

/** Return whether an entry has this id, or is a repost of the post that has it. */
function isOf(entry: RecordProxy | null | undefined, id: string): boolean {
  if (entry?.getDataID() === id) return true;
  return entry?.getType() === "Repost" && entry.getLinkedRecord("post")?.getDataID() === id;
}

/** Change a count of a post in the store. */
export function addTo(store: RecordSourceProxy, postId: string, field: string, change: number): void {
  const post = store.get(postId);
  const count: unknown = post?.getValue(field);
  if (typeof count === "number") post?.setValue(count + change, field);
}
