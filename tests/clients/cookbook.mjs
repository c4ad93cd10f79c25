// The recipes of docs/cookbook.md, run one after the other; prints what they return.
// Usage: node cookbook.mjs URL TOKEN
import { ApolloClient, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { indexFor } from "@fanline/client";

const [url, token] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };

/** Send an operation. If it failed, throw an error with its `code` and `retryAfter` (seconds). */
async function send(query, variables = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = await response.json();
  if (errors) throw Object.assign(new Error(errors[0].message), errors[0].extensions);
  return data;
}

const REPEATABLE = ["OVERLOADED", "STORE_UNAVAILABLE", "NOT_DURABLE"];

/** Publish a post exactly once. `key` belongs to the text, not to the attempt. */
async function publish(text, key, attempts = 5) {
  for (let attempt = 1; ; attempt++) {
    try {
      const { publishPost } = await send(
        `mutation ($text: String!, $key: String!) {
          publishPost(input: { text: $text, idempotencyKey: $key }) {
            timelineEdge { cursor node { __typename id ... on Post { text } } }
            userErrors { code message field }
          }
        }`,
        { text, key },
      );
      return publishPost;
    } catch (error) {
      // fetch throws a TypeError if the network failed
      const again = error instanceof TypeError || REPEATABLE.includes(error.code);
      if (!again || attempt === attempts) throw error;
      const seconds = error.retryAfter ?? 2 ** (attempt - 2);
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000 * (1 + Math.random())));
    }
  }
}

/** Yield all pages of the home timeline, each when the caller asks for it. */
async function* pages(size = 30) {
  let after = null;
  do {
    const { viewer } = await send(
      `query ($size: Int!, $after: String) {
        viewer { id homeTimeline { id entries(first: $size, after: $after) {
          edges { cursor node {
            __typename id author { id login }
            ... on Post { text }
            ... on Repost { post { id text author { id login } } }
          } }
          pageInfo { endCursor hasNextPage }
        } } }
      }`,
      { size, after },
    );
    const { edges, pageInfo } = viewer.homeTimeline.entries;
    yield edges;
    after = pageInfo.hasNextPage ? pageInfo.endCursor : null;
  } while (after);
}

/** The entries of a screen: those that are shown, and those that wait behind the pill. */
class Pill {
  constructor({ edges, pageInfo }) {
    this.edges = edges;
    this.pageInfo = pageInfo; // of the last page that is loaded
    this.held = new Set();
  }

  get shown() {
    return this.edges.filter(({ node }) => !this.held.has(node.id));
  }

  get waiting() {
    return this.edges.filter(({ node }) => this.held.has(node.id));
  }

  take(event) {
    const { __typename, timelineEdge, postId, repostId, userId } = event;
    if (__typename === "PostAdded" || __typename === "RepostAdded") {
      const { cursor, node } = timelineEdge;
      const edges = this.edges.map((each) => ({ id: each.node.id, cursor: each.cursor }));
      const index = indexFor({ id: node.id, cursor }, { ...this.pageInfo, edges });
      if (index === undefined) return; // the list has the entry, or will have it with a next page
      this.edges.splice(index, 0, timelineEdge);
      this.held.add(node.id);
    } else if (__typename === "PostRemoved") {
      this.keep((node) => node.id !== postId && node.post?.id !== postId);
    } else if (__typename === "RepostRemoved") {
      this.keep((node) => node.id !== repostId);
    } else if (__typename === "AuthorRemoved") {
      this.keep((node) => node.author.id !== userId);
    } else if (__typename === "AuthorHidden") {
      this.keep((node) => node.author.id !== userId && node.post?.author.id !== userId);
    }
  }

  keep(isKept) {
    this.edges = this.edges.filter(({ node }) => isKept(node));
  }

  open() {
    this.held.clear();
  }
}

/** Count the entries above a cursor: at most 100, which a badge shows as "99+". */
async function unread(cursor) {
  const { viewer } = await send(
    `query ($cursor: String!) {
      viewer { id homeTimeline { id entries(last: 100, before: $cursor) { edges { cursor } } } }
    }`,
    { cursor },
  );
  return viewer.homeTimeline.entries.edges.length;
}

const FOLLOW = gql`
  mutation Follow($ids: [ID!]!) {
    followUsers(input: { userIds: $ids }) {
      results {
        userId
        outcome
        error { code message }
        user { id followersCount relationship { id state following } }
      }
      userErrors { code message }
    }
  }
`;

/** Follow a user. Button and count change at once, and change back if the mutation fails. */
function follow(client, user) {
  const state = user.relationship.state === "FOLLOWED_BY" ? "MUTUAL" : "FOLLOWING";
  const relationship = { ...user.relationship, state, following: true };
  const result = {
    __typename: "FollowResult",
    userId: user.id,
    outcome: "FOLLOWED",
    error: null,
    user: { __typename: "User", id: user.id, followersCount: user.followersCount + 1, relationship },
  };
  return client.mutate({
    mutation: FOLLOW,
    variables: { ids: [user.id] },
    optimisticResponse: {
      followUsers: { __typename: "FollowUsersPayload", results: [result], userErrors: [] },
    },
  });
}

const before = (await pages(1).next()).value[0];
const first = await publish("once", "key-1");
const again = await publish("once", "key-1");
const refused = await publish("", "key-2");

const read = [];
for await (const edges of pages(40)) read.push(...edges.map(({ node }) => node.id));
const above = await unread(before.cursor); // before the posts of a new followee join the timeline

const pill = new Pill({ edges: [before], pageInfo: {} });
for (const __typename of ["PostAdded", "PostAdded", "Unknown"]) pill.take({ __typename, timelineEdge: first.timelineEdge });
const waiting = pill.waiting.length;
pill.open();
const shown = pill.shown.length;
pill.take({ __typename: "PostRemoved", postId: first.timelineEdge.node.id });
pill.take({ __typename: "AuthorRemoved", userId: before.node.author.id });

const client = new ApolloClient({ cache: new InMemoryCache(), link: new HttpLink({ uri: url, headers }) });
const USER = gql`
  query User {
    user(by: { login: "xiaoming" }) { id followersCount relationship { id state following } }
  }
`;
const { data } = await client.query({ query: USER });
const done = follow(client, data.user);
const optimistic = client.readQuery({ query: USER }, true).user;
await done;
const real = client.readQuery({ query: USER }).user;

console.log(
  JSON.stringify({
    once: first.timelineEdge.node.id === again.timelineEdge.node.id,
    refused: refused.userErrors.map(({ code }) => code),
    read: read.length,
    distinct: new Set(read).size,
    unread: above,
    pill: [waiting, shown, pill.shown.length],
    before: data.user.followersCount,
    optimistic: [optimistic.followersCount, optimistic.relationship.state],
    real: [real.followersCount, real.relationship.state],
  }),
);
