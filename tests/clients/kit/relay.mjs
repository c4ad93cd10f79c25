// Lists in Relay's store. The artifacts of relay-compiler are in the folder `artifacts`.
import { live } from "@fanline/client";
import { applyEvent, liveCursorOf, watchPages, withLiveCursors } from "@fanline/client/relay";
import relay from "relay-runtime";

const { ConnectionHandler, DefaultHandlerProvider, Environment, Network, Observable, RecordSource, Store } = relay;
const { createOperationDescriptor, fetchQuery, requestSubscription } = relay;

const KINDS = {
  home: { field: "homeTimeline", list: "entries", page: "timelinePageQuery", live: "timelineLiveSubscription" },
  notifications: { field: "notifications", list: "entries", page: "feedPageQuery", live: "feedLiveSubscription" },
};

export async function open({ url, headers, fetch, socket }, { artifacts }, onEnd) {
  const artifact = async (name) => (await import(`${artifacts}/${name}.graphql.js`)).default;
  const badgeQuery = await artifact("feedBadgeQuery");

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

  async function load({ shows, first, kinds = null, after }) {
    return fetchNow(await artifact(KINDS[shows].page), { count: first, kinds, after });
  }

  async function show(settings) {
    const { shows, first, kinds = null } = settings;
    const { field, list, ...names } = KINDS[shows];
    const [page, subscription] = await Promise.all([artifact(names.page), artifact(names.live)]);
    const operation = createOperationDescriptor(page, { count: first, kinds });
    const retained = environment.retain(operation);
    const timeline = () => environment.lookup(operation.fragment).data.viewer[field];
    if (environment.check(operation).status !== "available") await load(settings);

    const key = shows === "home" ? "timeline_entries" : "feed_entries";
    const connection = ConnectionHandler.getConnectionID(timeline().id, key, kinds ? { kinds } : undefined);
    const stop = live({
      liveCursor: liveCursorOf(environment, connection),
      async refetch() {
        await load(settings);
        return liveCursorOf(environment, connection);
      },
      subscribe(after, sink) {
        const { dispose } = requestSubscription(environment, {
          subscription,
          variables: { after },
          updater: (store) => applyEvent(store, connection, store.getRootField(field), kinds),
          onNext: (data) => sink.next(data[field]),
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      watchPages: (arrived) => watchPages(connection, arrived),
      onEnd,
    });

    const next = () => load({ ...settings, after: timeline()[list].pageInfo.endCursor });
    return { timeline, next, close: () => (stop(), retained.dispose()) };
  }

  const badge = () => fetchNow(badgeQuery, {});

  return { show, load, badge };
}
