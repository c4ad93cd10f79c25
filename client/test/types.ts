// The types of the kit fit those of the libraries: `tsc -p test` compiles this file.
import { InMemoryCache } from "@apollo/client";
import { relayStylePagination } from "@apollo/client/utilities";
import { cacheExchange } from "@urql/exchange-graphcache";
import { relayPagination } from "@urql/exchange-graphcache/extras";
import { createClient as createEvents } from "graphql-sse";
import type { Client as Events } from "graphql-sse";
import { createClient as createSocket } from "graphql-ws";
import type { Client as Socket } from "graphql-ws";
import { DefaultHandlerProvider, Environment, Network, RecordSource, Store } from "relay-runtime";
import { collapseReposts, pause, resuming } from "../dist/index.js";
import { possibleTypes, typePolicies } from "../dist/apollo.js";
import { withLiveCursors } from "../dist/relay.js";
import { keys, resolvers, updates } from "../dist/urql.js";

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
