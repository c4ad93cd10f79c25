// The types of the kit fit those of the libraries: `tsc -p test` compiles this file.
import { InMemoryCache } from "@apollo/client";
import type { TypedDocumentNode } from "@apollo/client";
import { relayStylePagination } from "@apollo/client/utilities";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { createClient as createEvents } from "graphql-sse";
import type { Client as Events } from "graphql-sse";
import { createClient as createSocket } from "graphql-ws";
import type { Client as Socket } from "graphql-ws";
import { DefaultHandlerProvider, Environment, Network, RecordSource, Store } from "relay-runtime";
import type { GraphQLTaggedNode } from "relay-runtime";
import { collapseReposts, pause, resuming } from "../dist/index.js";
import { possibleTypes, typePolicies } from "../dist/apollo.js";
import * as apollo from "../dist/apollo-react.js";
import { withLiveCursors } from "../dist/relay.js";
import * as relay from "../dist/relay-react.js";
import { keys, resolvers, updates } from "../dist/urql.js";
import * as urql from "../dist/urql-react.js";

const url = "http://localhost:8000/graphql";

export const socket: Socket = resuming(createSocket({ url, retryWait: pause }));
export const events: Events = resuming(createEvents({ url, retry: pause }));
export const exchange = cacheExchange({ keys, resolvers: resolvers(relayPagination()), updates });
export const cache = new InMemoryCache({ possibleTypes, typePolicies: typePolicies(relayStylePagination()) });
export const environment = new Environment({
  network: Network.create(() => ({ data: {} })),
  handlerProvider: withLiveCursors(DefaultHandlerProvider),
  store: new Store(new RecordSource()),
});

type Entry =
  | { readonly __typename: "Post"; readonly id: string; readonly text: string }
  | { readonly __typename: "Repost"; readonly id: string; readonly post: { readonly id: string } | null };
declare const entries: readonly Entry[];
export const shown: Entry[] = collapseReposts(entries);

// The types of documents, as GraphQL Code Generator writes them, are those of the entries.
interface Page<Node> {
  edges: Array<{ __typename?: "Edge"; cursor: string; node: Node }>;
  pageInfo: { hasNextPage: boolean; endCursor?: string | null };
}
type Home = { viewer?: { homeTimeline?: { id: string; liveCursor?: string | null; entries?: Page<Entry> | null } | null } | null };
type Owner =
  | { __typename: "User"; id: string }
  | { __typename: "Timeline"; id: string; liveCursor: string | null; entries: Page<Entry> | null };
declare const home: TypedDocumentNode<Home, { first: number; after?: string | null }>;
declare const byId: TypedDocumentNode<{ node: Owner | null }, { id: string; first: number; after?: string | null }>;

for (const hooks of [apollo, urql]) {
  const { entries, error, loading, hasMore, loadMore } = hooks.useHomeTimeline({ query: home, first: 10 });
  const own: Entry[] = entries;
  const ofList: Entry[] = hooks.useTimeline("id", { query: byId }).entries;
  const texts: string[] = hooks.useThread("id").entries.map(({ text, author }) => `${author.login}: ${text}`);
  const post: string | undefined = hooks.useThread(undefined).data?.post?.text;
  const titles = hooks.useHomeTimeline().entries.map((each) => (each.__typename === "Post" ? each.text : each.post?.text));
  const unread: number | undefined = hooks.useNotifications({ kinds: ["LIKE"] }).data?.viewer?.notifications?.unreadCount;
  // @ts-expect-error the entries have no such field
  entries.map(({ subject }) => subject);
  console.log(own, ofList, texts, post, titles, unread, error?.message, loading, hasMore, loadMore());
}

// The types of relay-compiler, too.
interface HomeQuery {
  response: {
    readonly viewer:
      | { readonly homeTimeline: { readonly entries: { readonly edges: readonly { readonly node: Entry }[] } } | null | undefined }
      | null
      | undefined;
  };
  variables: { first: number; after?: string | null };
}
declare const query: GraphQLTaggedNode;
declare const subscription: GraphQLTaggedNode;
const list = relay.useHomeTimeline<HomeQuery>({ query, subscription });
export const relayEntries: Entry[] = list.entries;
export const timelineIsMissing: boolean = list.data?.viewer?.homeTimeline == null;
// @ts-expect-error relay-compiler compiles the documents of an application, so the hook has none of its own
relay.useHomeTimeline();
