// What the clients in this folder share: where the server is and who asks, what they ask for, and what they show.
import WebSocket from "ws";

globalThis.WebSocket ??= WebSocket; // as browsers have it; Node does from version 22 on

export const [url, token, login] = process.argv.slice(2);
export const headers = { authorization: `Bearer ${token}` };
export const PING = Number(process.env.PING ?? 10_000); // milliseconds between pings, and until one is answered

const ENTRY = `fragment Entry on TimelineItem {
  __typename id ... on Post { text } ... on Repost { author { id login } post { id text } }
}`;

export const PAGE = `query Page {
  viewer { id homeTimeline { id liveCursor(first: 100) entries(first: 100) { nodes { ...Entry } } } }
}
${ENTRY}`;
export const LIVE = `subscription Live($after: String) {
  homeTimeline(after: $after) {
    __typename
    cursor
    ... on PostAdded { timelineEdge { node { ...Entry } } }
    ... on RepostAdded { timelineEdge { node { ...Entry } } }
  }
}
${ENTRY}`;

/** Ask without any library. */
export async function ask(query, variables = {}) {
  const body = JSON.stringify({ query, variables });
  const response = await fetch(url, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body });
  return (await response.json()).data;
}

/** Show a post or a repost. An entry of a type that this version does not know is left out. */
export function show({ __typename, text, author, post }) {
  if (__typename === "Post") console.log(JSON.stringify(text));
  if (__typename === "Repost") console.log(JSON.stringify(`${author.login} reposted: ${post?.text}`));
}

const held = new Set();

/** Show a page of entries, the oldest first; give the cursor from which to listen. */
export function open({ viewer }) {
  const { liveCursor, entries } = viewer.homeTimeline;
  for (const entry of [...entries.nodes].reverse()) {
    held.add(entry.id);
    show(entry);
  }
  return liveCursor;
}

/** Take an event: show a new entry, unless the page had it. What comes twice after that is shown twice. */
export function take({ __typename, timelineEdge }) {
  const isAdded = __typename === "PostAdded" || __typename === "RepostAdded";
  if (isAdded && !held.has(timelineEdge.node.id)) show(timelineEdge.node);
}

/** Give up, and say why. */
export function fail(problem) {
  console.error(problem);
  process.exit(1);
}

