import assert from "node:assert/strict";
import { test } from "node:test";
import { indexFor } from "../dist/index.js";

/** Return the posts "c9", "c7" … with their cursors, as a list with these options. */
const list = (posts, options = {}) => ({ edges: posts.map((id) => ({ id, cursor: id })), ...options });
const indexOf = (cursor, loaded) => indexFor({ id: cursor, cursor }, loaded);

test("the newest post comes first", () => {
  assert.equal(indexOf("c9", list(["c7", "c5"], { hasNextPage: true, endCursor: "c5" })), 0);
});

test("a post that comes late goes between its neighbours", () => {
  assert.equal(indexOf("c6", list(["c7", "c5"], { hasNextPage: true, endCursor: "c5" })), 1);
});

test("a post of the list is not added again, also if its edge has another cursor", () => {
  assert.equal(indexOf("c5", list(["c7", "c5"])), undefined);
  assert.equal(indexFor({ id: "c5", cursor: "c9" }, list(["c7", "c5"])), undefined);
});

test("a post of a next page is left to that page", () => {
  assert.equal(indexOf("c4", list(["c7", "c5"], { hasNextPage: true, endCursor: "c5" })), undefined);
  assert.equal(indexOf("c4", list(["c7", "c5"])), undefined);
});

test("without a next page, an older post comes last", () => {
  assert.equal(indexOf("c4", list(["c7", "c5"], { hasNextPage: false, endCursor: "c5" })), 2);
});

test("the page ends at its end cursor, also after its last posts were removed", () => {
  assert.equal(indexOf("c4", list(["c7"], { hasNextPage: true, endCursor: "c3" })), 1);
  assert.equal(indexOf("c4", list([], { hasNextPage: true, endCursor: "c3" })), 0);
  assert.equal(indexOf("c2", list([], { hasNextPage: true, endCursor: "c3" })), undefined);
});

test("an empty list takes the first post", () => {
  for (const pageInfo of [{}, { hasNextPage: false, endCursor: null }]) assert.equal(indexOf("c1", list([], pageInfo)), 0);
});
