import { addEdge } from "@fanline/client/relay";
import { ConnectionHandler } from "react-relay";
import { ROOT_ID } from "relay-runtime";
import type { Environment, RecordProxy, RecordSourceProxy } from "relay-runtime";

/** Return those of the lists with a user's posts that are in the store: the home timeline and the user's own. */
export function postConnections(environment: Environment, userId: string): string[] {
  const source = environment.getStore().getSource();
  const refOf = (id: string | undefined, field: string): string | undefined =>
    id === undefined ? undefined : (source.get(id)?.[field] as { __ref?: string } | null | undefined)?.__ref;
  const of = (owner: string | undefined, field: string, key: string): string | undefined => {
    const timeline = refOf(owner, field);
    return timeline && ConnectionHandler.getConnectionID(timeline, key);
  };
  const ids = [of(refOf(ROOT_ID, "viewer"), "homeTimeline", "HomeFeed_posts"), of(userId, "timeline", "ProfilePosts_posts")];
  return ids.filter((id): id is string => id !== undefined && source.has(id));
}

/** Return the list of the replies to a post. */
export function replyConnection(postId: string): string {
  return ConnectionHandler.getConnectionID(postId, "Replies_replies");
}

/** Insert a published post where it belongs: a reply below its post, and any other post into the lists of its author. */
export function addPost(
  environment: Environment,
  store: RecordSourceProxy,
  edge: RecordProxy | null | undefined,
  userId: string,
): void {
  const parent: unknown = edge?.getLinkedRecord("node")?.getValue("replyToId");
  const lists = typeof parent === "string" ? [replyConnection(parent)] : postConnections(environment, userId);
  for (const list of lists) addEdge(store, list, edge);
}

/** Insert a post from a stream at the top of a list. Return false if the list has it. */
export function prependPost(store: RecordSourceProxy, connectionId: string, post: RecordProxy): boolean {
  const connection = store.get(connectionId);
  if (!connection) return false;
  const edges = connection.getLinkedRecords("edges") ?? [];
  if (edges.some((edge) => edge.getLinkedRecord("node")?.getDataID() === post.getDataID())) return false;
  const edge = ConnectionHandler.createEdge(store, connection, post, "PostEdge");
  edge.setValue("", "cursor"); // the stream does not know it, and no page begins here
  ConnectionHandler.insertEdgeBefore(connection, edge);
  return true;
}

/**
 * Remove a deleted post and its reposts from all lists, and the post from the store: quotes then show that it is gone.
 *
 * Lists come first: an edge without its node is not allowed.
 */
export function forgetPost(environment: Environment, store: RecordSourceProxy, postId: string): void {
  const source = environment.getStore().getSource();
  for (const id of source.getRecordIDs()) {
    if (source.get(id)?.["__typename"] !== "PostConnection") continue;
    const connection = store.get(id);
    const edges = connection?.getLinkedRecords("edges");
    const kept = edges?.filter((edge) => !isGone(edge.getLinkedRecord("node"), postId));
    if (kept && kept.length !== edges?.length) connection?.setLinkedRecords(kept, "edges");
  }
  store.delete(postId);
}

/** Return whether a post is the deleted one, or a repost of it without a text. */
function isGone(post: RecordProxy | null | undefined, postId: string): boolean {
  if (post?.getDataID() === postId) return true;
  const isPlain = post?.getValue("text") === "" && post.getLinkedRecords("attachments")?.length === 0;
  return isPlain && post.getLinkedRecord("repostOf")?.getDataID() === postId;
}

/** Change a count of a post in the store. */
export function addTo(store: RecordSourceProxy, postId: string, field: string, change: number): void {
  const post = store.get(postId);
  const count: unknown = post?.getValue(field);
  if (typeof count === "number") post?.setValue(count + change, field);
}
