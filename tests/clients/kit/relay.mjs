// Lists in Relay's store. The artifacts of relay-compiler are in the folder `artifacts`.
import { withLiveCursors } from "@fanline/client/relay";
import { useHomeTimeline, useNotifications, useThread, useTimeline } from "@fanline/client/relay-react";
import reactRelay from "react-relay";
import relay from "relay-runtime";
import { artifactsIn, showing } from "./screen.mjs";

const { DefaultHandlerProvider, Environment, Network, Observable, RecordSource, Store, commitLocalUpdate, fetchQuery } = relay;
const { RelayEnvironmentProvider } = reactRelay;

const NAMES = { home: "timeline", notifications: "feed", timeline: "byId", thread: "thread" };

export async function open({ url, headers, fetch, socket }, { artifacts }, onEnd) {
  const artifact = artifactsIn(artifacts);

  async function fetchGraphQL({ text }, variables) {
    const response = await fetch(url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ query: text, variables }),
    });
    return response.json();
  }

  const environment = new Environment({
    network: Network.create(fetchGraphQL, ({ text }, variables) =>
      Observable.create((sink) => socket.subscribe({ query: text, variables }, sink)),
    ),
    handlerProvider: withLiveCursors(DefaultHandlerProvider),
    store: new Store(new RecordSource()),
  });

  const fetchNow = (query, variables) => fetchQuery(environment, query, variables, { fetchPolicy: "network-only" }).toPromise();

  async function load({ shows, id, first, kinds = null, after }) {
    return fetchNow(await artifact(`${NAMES[shows]}PageQuery`), { id, first, kinds, after });
  }

  async function show({ shows, id, first, kinds }) {
    const [query, subscription] = await Promise.all(
      ["PageQuery", "LiveSubscription"].map((each) => artifact(`${NAMES[shows]}${each}`)),
    );
    const documents = { query, subscription, first };
    const lists = {
      home: () => useHomeTimeline(documents),
      notifications: () => useNotifications({ ...documents, kinds }),
      timeline: () => useTimeline(id, documents),
      thread: () => useThread(id, documents),
    };
    return showing(lists[shows], RelayEnvironmentProvider, { environment }, onEnd);
  }

  const badge = async () => fetchNow(await artifact("feedBadgeQuery"), {});

  /** Remove a field of an item. */
  function forget({ id, text }) {
    commitLocalUpdate(environment, (store) => store.get(id).setValue(undefined, text === undefined ? "isRead" : "text"));
  }

  const properties = { environment };
  return { show, load, badge, forget, Provider: RelayEnvironmentProvider, properties, documentOf: (artifact) => artifact };
}
