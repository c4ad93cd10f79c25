import assert from "node:assert/strict";
import { test } from "node:test";
import { SocketClosed, failure, resuming } from "../dist/index.js";

/** Stand for the part of a client that keeps an operation: it sends the same request at each connection. */
function stub() {
  const seen = { ended: 0 };
  return {
    seen,
    dispose: () => "disposed",
    iterate: () => assert.fail("must not be used"),
    subscribe(request, sink) {
      Object.assign(seen, { request, sink });
      return () => seen.ended++;
    },
  };
}

const event = (cursor) => ({ data: { homeTimeline: { cursor } } });

test("the variables of the next connection have the last event's cursor", () => {
  const client = stub();
  const variables = { after: "c0" };
  resuming(client).subscribe({ query: "…", variables }, { next() {}, error() {}, complete() {} });
  client.seen.sink.next(event("c1"));
  client.seen.sink.next({ errors: [], data: null });
  assert.deepEqual(client.seen.request.variables, { after: "c1" });
  assert.deepEqual(variables, { after: "c0" });
});

test("an iterator resumes too, and ends the subscription", async () => {
  const client = stub();
  const results = resuming(client).iterate({ query: "…" });
  client.seen.sink.next(event("c1"));
  client.seen.sink.next(event("c2"));
  assert.deepEqual(client.seen.request.variables, { after: "c2" });
  for await (const result of results) {
    if (result.data.homeTimeline.cursor === "c2") break;
  }
  assert.equal(client.seen.ended, 1);
  assert.deepEqual(await results.next(), { done: true, value: undefined });
});

test("an iterator throws after the last result", async () => {
  const client = stub();
  const results = resuming(client).iterate({ query: "…" });
  const waiting = results.next();
  client.seen.sink.next(event("c1"));
  client.seen.sink.error(new Error("lost"));
  assert.deepEqual(await waiting, { done: false, value: event("c1") });
  await assert.rejects(results.next(), /lost/);
  assert.equal((await results.next()).done, true);
});

test("the rest of the client stays", () => {
  assert.equal(resuming(stub()).dispose(), "disposed");
});

test("a close event becomes an error with the code", () => {
  const client = stub();
  const problems = [];
  resuming(client).subscribe({ query: "…" }, { next() {}, error: (problem) => problems.push(problem), complete() {} });
  client.seen.sink.error({ type: "close", code: 4403, reason: "Forbidden" });
  client.seen.sink.error([{ message: "refused" }]);
  assert.ok(problems[0] instanceof SocketClosed);
  assert.match(problems[0].message, /4403: Forbidden/);
  assert.equal(failure(problems[0]).code, "UNAUTHENTICATED");
  assert.deepEqual(problems[1], [{ message: "refused" }]);
});
