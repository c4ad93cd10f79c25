// A notification of any type stays without its post when the post is removed, and its page is not fetched again.
import assert from "node:assert/strict";
import { test } from "node:test";
import { InMemoryCache, gql } from "@apollo/client";
import { relayStylePagination } from "@apollo/client/utilities";
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { applyEvent, possibleTypes, typePolicies } from "../dist/apollo.js";
import { keys, resolvers, updates } from "../dist/urql.js";

const QUERY = `query Feed($kinds: [NotificationKind!]) {
  viewer {
    homeTimeline { id }
    notifications {
      id
      entries(first: 20, kinds: $kinds) {
        edges { cursor node { __typename id ... on PostNotification { post { id text } } } }
        pageInfo { hasNextPage endCursor }
      }
    }
  }
}`;
const LIVE = `subscription { homeTimeline { __typename cursor ... on PostRemoved { postId } } }`;
const EVENT = { __typename: "PostRemoved", cursor: "c2", postId: "p1" };
const TYPES = possibleTypes.PostNotification;

const edges = TYPES.map((__typename, place) => ({
  __typename: "NotificationEdge",
  cursor: `n${String(9 - place)}`,
  node: { __typename, id: __typename, post: { __typename: "Post", id: "p1", text: "removed" } },
}));
const pageInfo = { __typename: "PageInfo", hasNextPage: false, endCursor: edges.at(-1).cursor };
const data = {
  viewer: {
    __typename: "Viewer",
    homeTimeline: { __typename: "Timeline", id: "t1" },
    notifications: {
      __typename: "NotificationFeed",
      id: "f1",
      entries: { __typename: "NotificationConnection", edges, pageInfo },
    },
  },
};

const found = ({ viewer }) => viewer.notifications.entries.edges.map(({ node }) => [node.__typename, node.post]);
const expected = TYPES.map((name) => [name, null]);

test("in Apollo Client", () => {
  const cache = new InMemoryCache({ possibleTypes, typePolicies: typePolicies(relayStylePagination()) });
  const query = gql(QUERY);
  const lists = [{}, { kinds: ["REPLY"] }];
  for (const variables of lists) cache.writeQuery({ query, variables, data });
  applyEvent(cache, "t1", EVENT);
  for (const variables of lists) assert.deepEqual(found(cache.readQuery({ query, variables })), expected);
});

test("in urql", async () => {
  let fetches = 0;
  let sink;
  const client = new Client({
    url: "http://localhost/",
    preferGetMethod: false,
    fetch: async () => {
      fetches++;
      return new Response(JSON.stringify({ data }), { headers: { "content-type": "application/json" } });
    },
    exchanges: [
      cacheExchange({ keys, resolvers: resolvers(relayPagination()), updates }),
      fetchExchange,
      subscriptionExchange({ forwardSubscription: () => ({ subscribe: (own) => ((sink = own), { unsubscribe() {} }) }) }),
    ],
  });
  const lists = [{}, { kinds: ["REPLY"] }];
  for (const variables of lists) await client.query(QUERY, variables);
  client.subscription(LIVE, {}).subscribe(() => undefined);
  await Promise.resolve(); // the subscription starts
  sink.next({ data: { homeTimeline: EVENT } });
  for (const variables of lists) assert.deepEqual(found((await client.query(QUERY, variables)).data), expected);
  assert.equal(fetches, lists.length);
});
