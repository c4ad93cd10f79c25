import assert from "node:assert/strict";
import { beforeEach, mock, test } from "node:test";
import { live } from "../dist/index.js";

mock.timers.enable({ apis: ["setTimeout"] });

let log, pages, sinks, stop, arrived;

/** Let settled promises continue. */
const settle = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
};

const pass = async (milliseconds) => {
  mock.timers.tick(milliseconds);
  await settle();
};

const newest = () => sinks.at(-1);
const added = (cursor) => newest().next({ __typename: "AuthorAdded", cursor });
const post = (cursor) => ({ __typename: "PostAdded", cursor });

beforeEach(() => {
  stop?.();
  [log, pages, sinks] = [[], [], []];
});

function start(liveCursor) {
  stop = live({
    liveCursor,
    refetch: () => {
      log.push("fetch");
      return new Promise((resolve, reject) => pages.push({ resolve, reject }));
    },
    subscribe: (after, sink) => {
      log.push(`subscribe ${after}`);
      sinks.push(sink);
      return () => log.push(`end ${after}`);
    },
    apply: (event) => log.push(`${event.__typename} ${event.cursor}`),
    watchPages: (listener) => {
      arrived = listener;
      return () => log.push("unwatch");
    },
    onEnd: () => log.push("over"),
  });
}

test("it subscribes from the page's cursor, or fetches the page first", async () => {
  start("p1");
  assert.deepEqual(log, ["subscribe p1"]);
  log.length = 0;
  start(undefined);
  pages[0].resolve("p2");
  await settle();
  assert.deepEqual(log, ["fetch", "subscribe p2"]);
});

test("it applies what it knows and ignores other types", () => {
  start("p1");
  const items = ["PostAdded", "RepostAdded", "PostRemoved", "RepostRemoved"];
  const known = [...items, "ReplyAdded", "AuthorRemoved", "AuthorHidden", "NotificationAdded"];
  for (const __typename of ["Checkpoint", "PostChanged", ...known, "Novelty"]) newest().next({ __typename, cursor: "c" });
  assert.deepEqual(log.slice(1), known.map((name) => `${name} c`));
});

test("it fetches when a list has changed, and replaces the subscription only when the page is there", async () => {
  for (const __typename of ["AuthorAdded", "TimelineChanged", "NotificationsChanged", "Gap"]) {
    log.length = pages.length = 0;
    start("p1");
    const [old] = [newest()];
    old.next({ __typename, cursor: "c1" });
    old.next(post("c2"));
    pages[0].resolve("p2");
    await settle();
    old.next(post("late"));
    newest().next(post("c2"));
    assert.deepEqual(log, ["subscribe p1", "fetch", "PostAdded c2", "end p1", "subscribe p2", "PostAdded c2"]);
  }
});

test("it never fetches twice at once", async () => {
  start("p1");
  for (const cursor of ["c1", "c2", "c2", "c1"]) added(cursor);
  assert.equal(pages.length, 1);
});

test("it waits longer at each repetition of an event, up to 30 seconds", async () => {
  start("p1");
  added("c1");
  for (const delay of [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]) {
    pages.at(-1).resolve("p2");
    await settle();
    const fetched = pages.length;
    added("c1");
    await pass(delay - 1);
    assert.equal(pages.length, fetched);
    await pass(1);
    assert.equal(pages.length, fetched + 1);
  }
});

test("a new follow does not wait for the repetition of another", async () => {
  start("p1");
  added("c1");
  pages[0].resolve("p2");
  await settle();
  added("c1");
  added("c2");
  assert.equal(pages.length, 2);
  await pass(5000);
  assert.equal(pages.length, 2);
});

test("it ends when the session is over", async () => {
  for (const problem of [
    [{ extensions: { code: "UNAUTHENTICATED" } }],
    { code: 4403 },
    { graphQLErrors: [{ extensions: { code: "UNAUTHENTICATED" } }] },
    { source: { errors: [{ extensions: { code: "UNAUTHENTICATED" } }] } },
  ]) {
    start("p1");
    log.length = 0;
    newest().error(problem);
    await pass(100_000);
    assert.deepEqual(log, ["end p1", "unwatch", "over"]);
  }
});

test("it ends when the subscription does not select the cursor, from which it would continue", () => {
  start("p1");
  newest().next({ __typename: "PostAdded" });
  assert.deepEqual(log, ["subscribe p1", "unwatch", "end p1", "over"]);
});

test("it waits for retryAfter, then continues after the last event", async () => {
  for (const code of ["OVERLOADED", "STORE_UNAVAILABLE"]) {
    start("p1");
    newest().next(post("c5"));
    log.length = 0;
    newest().error([{ extensions: { code, retryAfter: 3 } }]);
    newest().complete();
    await pass(2_999);
    assert.deepEqual(log, ["end p1"]);
    await pass(3_001);
    assert.deepEqual(log, ["end p1", "subscribe c5"]);
  }
});

test("it fetches again when a fetch fails, and the subscription goes on", async () => {
  start("p1");
  added("c1");
  pages[0].reject(new Error("offline"));
  await settle();
  newest().next(post("c2"));
  await pass(250);
  pages[1].resolve("p2");
  await settle();
  assert.deepEqual(log, ["subscribe p1", "fetch", "PostAdded c2", "fetch", "end p1", "subscribe p2"]);
});

test("it fetches again when the page has no cursor, as when the server could not read the list", async () => {
  for (const nothing of [null, undefined]) {
    log.length = pages.length = 0;
    start(null);
    pages[0].resolve(nothing);
    await settle();
    await pass(250);
    pages[1].resolve("p2");
    await settle();
    assert.deepEqual(log, ["fetch", "fetch", "subscribe p2"]);
    stop();
  }
});

test("it keeps its cursor when a later page arrives, which has none", async () => {
  start("p1");
  arrived(null);
  newest().next({ __typename: "Gap", cursor: "c1" });
  arrived(null);
  pages[0].resolve("p2");
  await settle();
  assert.deepEqual(log, ["subscribe p1", "fetch", "end p1", "subscribe p2"]);
});

test("it begins again at a page that it did not fetch", () => {
  start("p1");
  const old = newest();
  old.next(post("c5"));
  arrived("p3");
  old.next(post("late"));
  newest().next(post("c4"));
  assert.deepEqual(log, ["subscribe p1", "PostAdded c5", "end p1", "subscribe p3", "PostAdded c4"]);
});

test("while it fetches a page, it follows the one that arrives last", async () => {
  start("p1");
  added("c1");
  arrived("p2");
  arrived("p3");
  pages[0].resolve("p2");
  await settle();
  assert.deepEqual(log, ["subscribe p1", "fetch", "end p1", "subscribe p3"]);
});

test("it follows a page that arrives during a fetch that fails", async () => {
  start("p1");
  added("c1");
  arrived("p2");
  pages[0].reject(new Error("offline"));
  await settle();
  assert.deepEqual(log, ["subscribe p1", "fetch", "end p1", "subscribe p2"]);
});

test("it does nothing after a stop", async () => {
  start("p1");
  added("c1");
  stop();
  log.length = 0;
  arrived("p2");
  pages[0].resolve("p2");
  await pass(60_000);
  assert.deepEqual(log, []);
});
