// What the timelines in this folder share: the connections of one of them, and the commands that it answers.
import { pause, resuming } from "@fanline/client";
import { createClient } from "graphql-ws";
import WebSocket from "ws";

export const COUNT = 20;

globalThis.WebSocket = WebSocket; // as in a browser: the link of Apollo Client needs it

/** Responses that are held back, once `close` was called, until `open` is. */
class Gate {
  #isClosed = false;
  #waiting = [];

  get held() {
    return this.#waiting.length;
  }

  close() {
    this.#isClosed = true;
  }

  open() {
    this.#isClosed = false;
    for (const go of this.#waiting.splice(0)) go();
  }

  async pass() {
    if (this.#isClosed) await new Promise((resolve) => this.#waiting.push(resolve));
  }
}

function textOf({ text, __typename, actors, post }) {
  if (__typename === "Repost") return `repost of ${post?.text ?? "nothing"}`;
  return text ?? `${__typename} of ${actors.map(({ login }) => login).join(" and ")}: ${post?.text ?? ""}`;
}

/** The connections of a timeline to the server, and how often what has happened on them. */
export class Connection {
  #isClosed = false;
  counts = { refetches: 0, subscriptions: 0, refusals: 0 };
  latest = ""; // the text of the last item that has arrived in an event
  first = new Gate();
  next = new Gate();

  /** The first page has the cursor `forged` the first time. */
  constructor({ url, token, forged }) {
    this.url = url;
    this.headers = { authorization: `Bearer ${token}` };
    this.forged = forged;
    this.client = createClient({
      url: url.replace("http", "ws"),
      connectionParams: this.headers,
      retryAttempts: Infinity,
      retryWait: (attempts) => pause(Math.min(attempts, 2)),
      shouldRetry: (problem) => problem.code !== 4403,
    });
    this.socket = resuming({ ...this.client, subscribe: this.#subscribe });
  }

  close() {
    this.#isClosed = true;
    this.first.open();
    this.next.open();
    this.client.dispose().catch(() => undefined); // it is trying to connect
  }

  /** Fetch, and pass the gate of the first page or of the next ones when the server has answered. */
  fetch = async (address, options) => {
    const response = await fetch(address, options).catch((problem) => {
      if (this.#isClosed) return new Promise(() => undefined); // the server has stopped after the timeline
      throw problem;
    });
    const text = await response.text();
    const isNext = JSON.parse(options.body).variables?.after;
    const isForged = !isNext && this.counts.refetches++ === 0 && this.forged;
    await (isNext ? this.next : this.first).pass();
    const body = isForged ? text.replace(/"liveCursor":"[^"]*"/, `"liveCursor":"${this.forged}"`) : text;
    const headers = { "content-type": response.headers.get("content-type") };
    return new Response(body, { status: response.status, headers });
  };

  #subscribe = (request, sink) => {
    this.counts.subscriptions += 1;
    return this.client.subscribe(request, {
      next: (result) => {
        const [event] = Object.values(result.data ?? {});
        const edge = event?.timelineEdge ?? event?.postEdge ?? event?.edge;
        if (edge) this.latest = textOf(edge.node);
        if (result.errors) this.counts.refusals += 1;
        sink.next(result);
      },
      error: (problem) => {
        this.counts.refusals += 1;
        sink.error(problem);
      },
      complete: () => sink.complete(),
    });
  };
}

/**
 * Show lists, and answer each command with one of them as the cache holds it: the first, or the one that `look N` has
 * chosen. `next` loads its next page, `leave` removes it from the screen, and `return` shows it again. As other parts of an
 * app can do, `refresh` begins to fetch what is on the screen, `fetch` the first page of the list, and `fetch null` the same
 * with `$after` as null; `ahead` fetches the page after the list, `reset` the first page after it has emptied the cache,
 * `forget` removes a field from the cache, and `badge` fetches cursors without a list. `hold` and `hold next` keep pages
 * back until `release`.
 */
export async function drive(connection, lines, say, { show, load, refresh, reset, forget, badge }, settings) {
  const { first, next: later, counts } = connection;
  const lists = settings.map((list) => ({ shows: "home", first: COUNT, ...list }));
  const screens = [];
  for (const list of lists) screens.push(await show(list));
  let current = 0;
  const page = () => screens[current].timeline().entries;
  const commands = {
    list: () => undefined,
    look: (number) => (current = Number(number)),
    hold: (which) => (which ? later : first).close(),
    release() {
      first.open();
      later.open();
    },
    next: () => screens[current].next(),
    /** Load the next page while it is held back. */
    scroll: () => void screens[current].next(),
    leave: () => screens[current].close(),
    async return() {
      screens[current] = await show(lists[current]);
    },
    refresh: () => void (refresh ? refresh() : load(lists[current])),
    fetch: (after) => void load(after ? { ...lists[current], after: null } : lists[current]),
    ahead: () => load({ ...lists[current], after: page().pageInfo.endCursor }),
    reset,
    forget: () => forget(page().edges[0].node),
    badge,
  };
  function answer() {
    const list = screens[current].timeline();
    const { unreadCount: unread, likesCount: likes } = list;
    const { edges, pageInfo } = page() ?? { edges: [], pageInfo: { hasNextPage: false } };
    const texts = edges.map(({ node }) => textOf(node));
    const shown = screens[current].shown().map(textOf);
    const quotes = edges.filter(({ node }) => node.quotedPost).length;
    const held = first.held + later.held;
    const { latest } = connection;
    say({ texts, shown, hasNext: pageInfo.hasNextPage, unread, likes, quotes, latest, held, ...counts });
  }
  answer();
  for await (const line of lines) {
    const [command, argument] = line.split(" ");
    await commands[command](argument);
    answer();
  }
  for (const screen of screens) screen.close();
}
