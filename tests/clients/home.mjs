// What the clients in this folder share: where the server is and who asks, what they ask for, and what they show.
import WebSocket from "ws";

globalThis.WebSocket ??= WebSocket; // as browsers have it; Node does from version 22 on

export const [url, token, login] = process.argv.slice(2);
export const headers = { authorization: `Bearer ${token}` };
export const PING = Number(process.env.PING ?? 10_000); // milliseconds between pings, and until one is answered

export const PAGE = `query Page {
  viewer { id homeTimeline { id liveCursor(first: 100) posts(first: 100) { nodes { id text } } } }
}`;
export const LIVE = `subscription Live($after: String) {
  homeTimeline(after: $after) { __typename cursor ... on PostAdded { edge { node { id text } } } }
}`;

/** Ask without any library. */
export async function ask(query, variables = {}) {
  const body = JSON.stringify({ query, variables });
  const response = await fetch(url, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body });
  return (await response.json()).data;
}

/** Show a post. */
export function show(post) {
  console.log(JSON.stringify(post.text));
}

const held = new Set();

/** Show a page of posts, the oldest first; give the cursor from which to listen. */
export function open({ viewer }) {
  const { liveCursor, posts } = viewer.homeTimeline;
  for (const post of [...posts.nodes].reverse()) {
    held.add(post.id);
    show(post);
  }
  return liveCursor;
}

/** Take an event: show a new post, unless the page had it. What comes twice after that is shown twice. */
export function take({ __typename, edge }) {
  if (__typename === "PostAdded" && !held.has(edge.node.id)) show(edge.node);
}

/** Give up, and say why. */
export function fail(problem) {
  console.error(problem);
  process.exit(1);
}

