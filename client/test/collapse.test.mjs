import assert from "node:assert/strict";
import { test } from "node:test";
import { collapseReposts } from "../dist/index.js";

const post = (id) => ({ __typename: "Post", id });
const repost = (id, of) => ({ __typename: "Repost", id, post: of === null ? null : post(of) });
const shown = (...entries) => collapseReposts(entries).map(({ id }) => id);

test("of a post and reposts of it, the first one stays", () => {
  assert.deepEqual(shown(repost("r2", "p1"), post("p2"), repost("r1", "p1"), post("p1")), ["r2", "p2"]);
  assert.deepEqual(shown(post("p1"), repost("r1", "p1"), post("p2")), ["p1", "p2"]);
});

test("nothing that is shown disappears when an older page loads", () => {
  const first = [repost("r2", "p1"), post("p3")];
  const older = [repost("r1", "p3"), post("p2"), post("p1")];
  assert.deepEqual(shown(...first), ["r2", "p3"]);
  assert.deepEqual(shown(...first, ...older), ["r2", "p3", "p2"]);
});

test("a newer repost that arrives at the top takes the place of what the list has of its post", () => {
  assert.deepEqual(shown(repost("r2", "p1"), post("p2"), repost("r1", "p1")), ["r2", "p2"]);
});

test("when the first occurrence is removed, the next one is shown again", () => {
  assert.deepEqual(shown(post("p2"), repost("r1", "p1"), post("p1")), ["p2", "r1"]);
});

test("reposts without their post stay, and so do a quote and its post", () => {
  const quote = { ...post("p2"), quotedPost: post("p1") };
  assert.deepEqual(shown(repost("r2", null), repost("r1", null), quote, post("p1")), ["r2", "r1", "p2", "p1"]);
});

test("the entries are the same objects, and the list that was passed stays as it is", () => {
  const entries = Object.freeze([repost("r1", "p1"), post("p1")]);
  const [only] = collapseReposts(entries);
  assert.equal(only, entries[0]);
  assert.equal(entries.length, 2);
});

test("a long list takes one pass", () => {
  let reads = 0;
  const counted = (entry) => ({ __typename: entry.__typename, id: entry.id, get post() { return reads++, entry.post; } });
  const entries = Array.from({ length: 10_000 }, (_, place) => counted(repost(`r${place}`, `p${place % 5000}`)));
  assert.equal(collapseReposts(entries).length, 5000);
  assert.equal(reads, entries.length);
});
