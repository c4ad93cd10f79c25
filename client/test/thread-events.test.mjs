// The events of a thread change the replies of its post, and the events of a timeline those of the timeline with its id.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { InMemoryCache, gql } from "@apollo/client";
import { relayStylePagination } from "@apollo/client/utilities";
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { buildSchema, introspectionFromSchema } from "graphql";
import relay from "relay-runtime";
import * as apollo from "../dist/apollo.js";
import { applyEvent } from "../dist/relay.js";
import { keys, resolvers, updates } from "../dist/urql.js";
import { write } from "./relay-store.mjs";

const text = await readFile(new URL("../../schema.graphql", import.meta.url), "utf8");
const schema = introspectionFromSchema(buildSchema(text));

const REPLY = `__typename id likesCount author { id } replyTo { id }`;
const PAGE = `liveCursor(first: $first, after: $after)
  replies(first: $first, after: $after) { edges { cursor node { ${REPLY} } } pageInfo { hasNextPage endCursor } }`;
const QUERY = `query ($first: Int!, $after: String) { post(id: "thread") { id likesCount ${PAGE} } }`;
const LIVE = `subscription { thread(postId: "thread") {
  __typename cursor
  ... on ReplyAdded { postEdge { cursor node { ${REPLY} } } }
  ... on PostRemoved { postId }
  ... on PostChanged { post { id likesCount } }
  ... on AuthorHidden { userId }
} }`;

const reply = (id, author, likesCount = 0) => ({
  ...{ __typename: "Post", id, likesCount, author: { __typename: "User", id: author } },
  replyTo: { __typename: "Post", id: "thread" },
});
const edge = (cursor, node) => ({ __typename: "PostEdge", cursor, node });
const page = (edges, hasNextPage, liveCursor) => ({
  post: {
    ...{ __typename: "Post", id: "thread", likesCount: 0, liveCursor },
    replies: {
      ...{ __typename: "PostConnection", edges },
      pageInfo: { __typename: "PageInfo", hasNextPage, endCursor: edges.at(-1).cursor },
    },
  },
});
const FIRST = page([edge("c9", reply("p9", "bob")), edge("c7", reply("p7", "carol"))], true, "l1");
const NEXT = page([edge("c5", reply("p5", "bob")), edge("c3", reply("p3", "carol"))], false, null);
const BEFORE = "p9 p7 p5 p3";

/** The events, with the ids of the replies that the list has afterwards. */
const CASES = [
  [{ __typename: "ReplyAdded", postEdge: edge("d1", reply("new", "bob")) }, `new ${BEFORE}`],
  [{ __typename: "ReplyAdded", postEdge: edge("c6", reply("late", "bob")) }, "p9 p7 late p5 p3"],
  [{ __typename: "ReplyAdded", postEdge: edge("c9", reply("p9", "bob")) }, BEFORE],
  [{ __typename: "PostRemoved", postId: "p7" }, "p9 p5 p3"],
  [{ __typename: "AuthorHidden", userId: "carol" }, "p9 p5"],
  [{ __typename: "PostChanged", post: { __typename: "Post", id: "thread", likesCount: 5 } }, BEFORE],
].map(([event, left]) => [{ cursor: "e1", ...event }, left]);

const idsOf = ({ post }) => post.replies.edges.map(({ node }) => node.id).join(" ");
const first = { first: 2 };
const next = { first: 2, after: "c7" };

function check(event, data, left) {
  assert.equal(idsOf(data), left, event.__typename);
  assert.equal(data.post.likesCount, event.post?.likesCount ?? 0);
  assert.equal(data.post.liveCursor, "l1");
}

function apolloCache() {
  const query = gql(QUERY);
  const pagination = relayStylePagination();
  const cache = new InMemoryCache({ possibleTypes: apollo.possibleTypes, typePolicies: apollo.typePolicies(pagination) });
  cache.writeQuery({ query, variables: first, data: FIRST });
  cache.writeQuery({ query, variables: next, data: NEXT });
  return { cache, read: () => cache.readQuery({ query, variables: first }) };
}

test("in Apollo Client", () => {
  for (const [event, left] of CASES) {
    const { cache, read } = apolloCache();
    cache.writeQuery({ query: gql(LIVE), data: { thread: event }, dataId: "ROOT_SUBSCRIPTION" });
    assert.equal(apollo.applyEvent(cache, "thread", event), left !== BEFORE, event.__typename);
    check(event, read(), left);
  }
});

test("in Apollo Client, where a removed post takes its thread with it", () => {
  const { cache, read } = apolloCache();
  apollo.applyEvent(cache, "thread", { __typename: "PostRemoved", postId: "thread" });
  assert.equal(read(), null);
});

test("in Apollo Client, where the watchers of a thread hear of its first pages", async () => {
  const { cache } = apolloCache();
  const arrived = [];
  apollo.watchPages(cache, { __typename: "Post", id: "thread" }, (liveCursor) => arrived.push(liveCursor));
  await Promise.resolve();
  arrived.length = 0;
  cache.writeQuery({ query: gql(QUERY), variables: first, data: page(FIRST.post.replies.edges, true, "l2") });
  cache.writeQuery({ query: gql(QUERY), variables: next, data: NEXT });
  await Promise.resolve();
  assert.deepEqual(arrived, ["l2"]);
});

async function urqlClient() {
  const found = { fetches: 0, page: FIRST };
  const fetch = async (_url, { body }) => {
    found.fetches++;
    const data = JSON.parse(body).variables.after ? NEXT : found.page;
    return new Response(JSON.stringify({ data }), { headers: { "content-type": "application/json" } });
  };
  const client = new Client({
    ...{ url: "http://localhost/", preferGetMethod: false, fetch },
    exchanges: [
      cacheExchange({ schema, keys, resolvers: resolvers(relayPagination()), updates }),
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: () => ({ subscribe: (sink) => ((found.sink = sink), { unsubscribe() {} }) }),
      }),
    ],
  });
  await client.query(QUERY, first);
  await client.query(QUERY, next);
  client.subscription(LIVE, {}).subscribe(() => undefined);
  await Promise.resolve(); // the subscription starts
  return Object.assign(found, { client, read: async () => (await client.query(QUERY, first)).data });
}

test("in urql", async () => {
  for (const [event, left] of CASES) {
    const found = await urqlClient();
    found.sink.next({ data: { thread: event } });
    check(event, await found.read(), left);
    assert.equal(found.fetches, 2, event.__typename);
  }
});

test("in urql, where a removed post takes its thread with it", async () => {
  const found = await urqlClient();
  found.page = { post: null };
  found.sink.next({ data: { thread: { __typename: "PostRemoved", cursor: "e1", postId: "thread" } } });
  assert.deepEqual(await found.read(), { post: null });
});

test("in urql, where a next page that has become empty is still the last one", async () => {
  const found = await urqlClient();
  for (const postId of ["p5", "p3"]) found.sink.next({ data: { thread: { __typename: "PostRemoved", cursor: "e1", postId } } });
  const { replies } = (await found.read()).post;
  assert.equal(replies.edges.length, 2);
  assert.deepEqual(replies.pageInfo, { hasNextPage: false, endCursor: "c3" });
});

test("in Relay", () => {
  for (const [event, left] of CASES) {
    const environment = new relay.Environment({
      network: relay.Network.create(() => ({ data: {} })),
      store: new relay.Store(new relay.RecordSource()),
    });
    environment.commitUpdate((store) => {
      const edges = [...FIRST.post.replies.edges, ...NEXT.post.replies.edges];
      const list = write(store, "list", { __typename: "PostConnection", edges, pageInfo: { endCursor: "c3" } });
      assert.equal(applyEvent(store, "list", write(store, "event", event)), left !== BEFORE);
      const ids = list.getLinkedRecords("edges").map((each) => each.getLinkedRecord("node").getDataID());
      assert.equal(ids.join(" "), left, event.__typename);
    });
  }
});
