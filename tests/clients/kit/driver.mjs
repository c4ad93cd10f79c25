// What the timelines in this folder share: node NAME.mjs URL SOCKET_URL TOKEN [CURSOR]
// Commands come as lines of standard input; each is answered with the list that the cache holds.
import { createInterface } from "node:readline";
import { pause, resuming } from "@fanline/client";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

export const [url, socketUrl, token, forged] = process.argv.slice(2);
export const headers = { authorization: `Bearer ${token}` };
export const COUNT = 20;

globalThis.WebSocket = WebSocket; // as in a browser: the link of Apollo Client needs it

let delay = 0;
let nextDelay = 0;
let refetches = 0;

/** Fetch, and hold pages of the timeline back for their delay. The first page has the cursor CURSOR the first time. */
export async function delayedFetch(address, options) {
  const response = await fetch(address, options);
  const { variables } = JSON.parse(options.body);
  if (variables?.after) return wait(nextDelay).then(() => response);
  refetches += 1;
  const held = delay;
  const isForged = forged !== undefined && refetches === 1;
  const body = await response.text();
  const text = isForged ? body.replace(/"liveCursor":"[^"]*"/, `"liveCursor":"${forged}"`) : body;
  await wait(held);
  return new Response(text, { status: response.status, headers: { "content-type": response.headers.get("content-type") } });
}

export const socket = resuming(
  createClient({
    url: socketUrl,
    connectionParams: headers,
    retryAttempts: Infinity,
    retryWait: (attempts) => pause(Math.min(attempts, 2)),
    shouldRetry: (problem) => problem.code !== 4403,
  }),
);

function wait(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

/** Whether the notifications are shown instead of the home timeline. */
export const showsFeed = process.env.SHOWS === "notifications";

const textOf = ({ text, kind, actors, post }) =>
  text ?? `${kind} of ${actors.map(({ login }) => login).join(" and ")}: ${post?.text ?? ""}`;

/**
 * Answer commands. `timeline` returns the timeline or the feed in the cache, and `next` loads its next page. As other
 * parts of an app can do, `refresh` begins to fetch the first page, `reset` does after it has emptied the cache, `forget`
 * removes a field from the cache, and `badge` fetches the cursor without the list.
 */
export async function drive({ timeline, next, refresh, reset, forget, badge }) {
  function answer() {
    const { posts, entries, unreadCount } = timeline();
    const { edges, pageInfo } = posts ?? entries;
    const texts = edges.map(({ node }) => textOf(node));
    const quotes = edges.filter(({ node }) => node.repostOf).length;
    console.log(JSON.stringify({ texts, hasNext: pageInfo.hasNextPage, refetches, unread: unreadCount, quotes }));
  }
  answer();
  for await (const line of createInterface({ input: process.stdin })) {
    const { command, milliseconds } = JSON.parse(line);
    if (command === "delay") delay = milliseconds;
    if (command === "delay next") nextDelay = milliseconds;
    if (command === "next") await next();
    if (command === "refresh") refresh();
    if (command === "reset") reset();
    if (command === "forget") forget();
    if (command === "badge") await badge();
    answer();
  }
}

export function fail(problem) {
  console.error(problem);
  process.exit(1);
}
