// The events of a home timeline change a list of posts and reposts in all caches alike.
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

const EDGE = `cursor node {
  __typename id author { id }
  ... on Post { quotedPost { id author { id } } }
  ... on Repost { post { id author { id } } }
}`;
const QUERY = `{
  viewer { homeTimeline { id entries(first: 20) { edges { ${EDGE} } pageInfo { hasNextPage endCursor } } } }
}`;
const LIVE = `subscription { homeTimeline {
  __typename cursor
  ... on PostAdded { timelineEdge { ${EDGE} } }
  ... on RepostAdded { timelineEdge { ${EDGE} } }
  ... on PostRemoved { postId }
  ... on RepostRemoved { repostId }
  ... on AuthorRemoved { userId }
  ... on AuthorHidden { userId }
} }`;

const user = (id) => ({ __typename: "User", id });
const post = (id, author, quotedPost = null) => ({ __typename: "Post", id, author: user(author), quotedPost });
const repost = (id, author, of) => ({ __typename: "Repost", id, author: user(author), post: of });
const reference = ({ quotedPost, ...each }) => each;
const edge = (cursor, node) => ({ __typename: "TimelineEdge", cursor, node });

const ofCarol = post("p1", "carol");
const ofBob = post("p2", "bob");
const EDGES = [
  edge("c8", repost("r1", "bob", reference(ofCarol))),
  edge("c7", post("quote", "bob", reference(ofCarol))),
  edge("c5", ofCarol),
  edge("c4", repost("r2", "carol", reference(ofBob))),
  edge("c2", ofBob),
];
const DATA = {
  viewer: {
    __typename: "Viewer",
    homeTimeline: {
      __typename: "Timeline",
      id: "t1",
      entries: {
        __typename: "TimelineConnection",
        edges: EDGES,
        pageInfo: { __typename: "PageInfo", hasNextPage: true, endCursor: "c2" },
      },
    },
  },
};

/** The events, with the ids of the entries that the list has afterwards. */
const CASES = [
  [{ __typename: "PostAdded", timelineEdge: edge("c9", post("p9", "bob")) }, "p9 r1 quote p1 r2 p2"],
  [{ __typename: "RepostAdded", timelineEdge: edge("c9", repost("r9", "bob", reference(ofCarol))) }, "r9 r1 quote p1 r2 p2"],
  [{ __typename: "RepostAdded", timelineEdge: edge("c6", repost("late", "bob", reference(ofBob))) }, "r1 quote late p1 r2 p2"],
  [{ __typename: "RepostAdded", timelineEdge: EDGES[0] }, "r1 quote p1 r2 p2"],
  [{ __typename: "PostRemoved", postId: "p1" }, "quote r2 p2"],
  [{ __typename: "RepostRemoved", repostId: "r1" }, "quote p1 r2 p2"],
  [{ __typename: "AuthorRemoved", userId: "carol" }, "r1 quote p2"],
  [{ __typename: "AuthorHidden", userId: "carol" }, "quote p2"],
].map(([event, left]) => [{ cursor: "e1", ...event }, left]);

const found = ({ viewer }) => viewer.homeTimeline.entries.edges.map(({ node }) => node);
const idsOf = (nodes) => nodes.map(({ id }) => id).join(" ");
const quotedBy = (nodes) => nodes.find(({ id }) => id === "quote")?.quotedPost;
const describe = ({ __typename, postId, repostId, userId, timelineEdge }) =>
  `${__typename} of ${postId ?? repostId ?? userId ?? timelineEdge.node.id}`;

function check(event, nodes, left) {
  assert.equal(idsOf(nodes), left, describe(event));
  if (event.__typename === "PostRemoved") assert.equal(quotedBy(nodes), null);
}

test("in Apollo Client", () => {
  const query = gql(QUERY);
  for (const [event, left] of CASES) {
    const pagination = relayStylePagination();
    const cache = new InMemoryCache({ possibleTypes: apollo.possibleTypes, typePolicies: apollo.typePolicies(pagination) });
    cache.writeQuery({ query, data: DATA });
    if (event.timelineEdge) cache.writeQuery({ query: gql(LIVE), data: { homeTimeline: event }, dataId: "ROOT_SUBSCRIPTION" });
    const hasChanged = apollo.applyEvent(cache, "t1", event);
    check(event, found(cache.readQuery({ query })), left);
    assert.equal(hasChanged, left !== idsOf(found(DATA)), describe(event));
    const ids = Object.keys(cache.extract());
    if (event.postId) assert.ok(!ids.includes(`Post:${event.postId}`));
    if (event.repostId) assert.ok(!ids.includes(`Repost:${event.repostId}`));
  }
});

test("in each list of Apollo Client, also if the post has left the cache before", () => {
  const query = gql(`query ($id: ID!) { node(id: $id) { id ... on Timeline { entries(first: 20) {
    edges { ${EDGE} } pageInfo { hasNextPage endCursor } } } } }`);
  const pagination = relayStylePagination();
  const cache = new InMemoryCache({ possibleTypes: apollo.possibleTypes, typePolicies: apollo.typePolicies(pagination) });
  const { entries } = DATA.viewer.homeTimeline;
  for (const id of ["t1", "t2"])
    cache.writeQuery({ query, variables: { id }, data: { node: { __typename: "Timeline", id, entries } } });
  for (const id of ["t1", "t2"]) {
    apollo.removePost(cache, id, "p1");
    const { node } = cache.readQuery({ query, variables: { id } });
    assert.equal(idsOf(node.entries.edges.map((each) => each.node)), "quote r2 p2");
  }
});

test("in urql", async () => {
  for (const [event, left] of CASES) {
    let fetches = 0;
    let sink;
    const client = new Client({
      url: "http://localhost/",
      preferGetMethod: false,
      fetch: async () => {
        fetches++;
        return new Response(JSON.stringify({ data: DATA }), { headers: { "content-type": "application/json" } });
      },
      exchanges: [
        cacheExchange({ schema, keys, resolvers: resolvers(relayPagination()), updates }),
        fetchExchange,
        subscriptionExchange({
          forwardSubscription: () => ({ subscribe: (own) => ((sink = own), { unsubscribe() {} }) }),
        }),
      ],
    });
    await client.query(QUERY, {});
    client.subscription(LIVE, {}).subscribe(() => undefined);
    await Promise.resolve(); // the subscription starts
    sink.next({ data: { homeTimeline: event } });
    check(event, found((await client.query(QUERY, {})).data), left);
    assert.equal(fetches, 1, describe(event));
  }
});

test("in Relay", () => {
  for (const [event, left] of CASES) {
    const environment = new relay.Environment({
      network: relay.Network.create(() => ({ data: {} })),
      store: new relay.Store(new relay.RecordSource()),
    });
    let nodes;
    environment.commitUpdate((store) => {
      const list = write(store, "list", { __typename: "TimelineConnection", edges: EDGES, pageInfo: { endCursor: "c2" } });
      const hasChanged = applyEvent(store, "list", write(store, "event", event));
      nodes = list.getLinkedRecords("edges").map((each) => each.getLinkedRecord("node"));
      nodes = nodes.map((node) => ({ id: node.getDataID(), quotedPost: node.getLinkedRecord("quotedPost") }));
      assert.equal(hasChanged, left !== idsOf(found(DATA)), describe(event));
    });
    check(event, nodes, left);
  }
});
