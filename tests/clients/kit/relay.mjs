// Lists in Relay's store. The artifacts of relay-compiler are in the folder `artifacts`.
import { collapseReposts, live } from "@fanline/client";
import { applyEvent, liveCursorOf, watchPages, withLiveCursors } from "@fanline/client/relay";
import relay from "relay-runtime";

const { ConnectionHandler, DefaultHandlerProvider, Environment, Network, Observable, RecordSource, Store } = relay;
const { createOperationDescriptor, fetchQuery, requestSubscription } = relay;

const KINDS = {
  home: { name: "timeline", field: "homeTimeline", list: "entries", ownerOf: ({ viewer }) => viewer.homeTimeline },
  notifications: { name: "feed", field: "notifications", list: "entries", ownerOf: ({ viewer }) => viewer.notifications },
  timeline: { name: "byId", field: "timeline", list: "entries", ownerOf: ({ node }) => node },
  thread: { name: "thread", field: "thread", list: "replies", ownerOf: ({ post }) => post },
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

  async function load({ shows, id, first, kinds = null, after }) {
    return fetchNow(await artifact(`${KINDS[shows].name}PageQuery`), { id, count: first, kinds, after });
  }

  async function show(settings) {
    const { shows, id, first, kinds = null } = settings;
    const { name, field, list, ownerOf } = KINDS[shows];
    const [page, subscription] = await Promise.all([artifact(`${name}PageQuery`), artifact(`${name}LiveSubscription`)]);
    const operation = createOperationDescriptor(page, { id, count: first, kinds });
    const retained = environment.retain(operation);
    const owner = () => ownerOf(environment.lookup(operation.fragment).data);
    const timeline = () => ({ ...owner(), entries: owner()[list] });
    if (environment.check(operation).status !== "available") await load(settings);

    const filters = kinds ? { kinds } : undefined;
    const connection = ConnectionHandler.getConnectionID(timeline().id, `${name}_${list}`, filters);
    const stop = live({
      liveCursor: liveCursorOf(environment, connection),
      async refetch() {
        await load(settings);
        return liveCursorOf(environment, connection);
      },
      subscribe(after, sink) {
        const { dispose } = requestSubscription(environment, {
          subscription,
          variables: { id, after },
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

    const next = () => load({ ...settings, after: timeline().entries.pageInfo.endCursor });
    const shown = () => collapseReposts(timeline().entries.edges.map(({ node }) => node));
    return { timeline, shown, next, close: () => (stop(), retained.dispose()) };
  }

  const badge = () => fetchNow(badgeQuery, {});

  return { show, load, badge };
}
