// A timeline in Relay's store. The artifacts of relay-compiler are in the folder `artifacts`.
import { live } from "@fanline/client";
import { applyEvent } from "@fanline/client/relay";
import relay from "relay-runtime";
import { COUNT } from "./driver.mjs";

const { ConnectionHandler, Environment, Network, Observable, RecordSource, Store } = relay;
const { createOperationDescriptor, fetchQuery, requestSubscription } = relay;

export async function open({ url, headers, fetch, socket }, { artifacts }, onEnd) {
  const artifact = async (name) => (await import(`${artifacts}/${name}.graphql.js`)).default;
  const [page, nextPage, liveSubscription] = await Promise.all(
    ["timelinePageQuery", "timelineNextQuery", "timelineLiveSubscription"].map(artifact),
  );

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
    store: new Store(new RecordSource()),
  });
  const operation = createOperationDescriptor(page, { count: COUNT });
  environment.retain(operation);
  const timeline = () => environment.lookup(operation.fragment).data.viewer.homeTimeline;

  async function fetchPage() {
    const options = { fetchPolicy: "network-only" };
    const { viewer } = await fetchQuery(environment, page, { count: COUNT }, options).toPromise();
    return viewer.homeTimeline.liveCursor;
  }

  const close = live({
    liveCursor: await fetchPage(),
    refetch: fetchPage,
    subscribe(after, sink) {
      const connection = ConnectionHandler.getConnectionID(timeline().id, "timeline_posts");
      const subscription = requestSubscription(environment, {
        subscription: liveSubscription,
        variables: { after },
        updater: (store) => applyEvent(store, connection, store.getRootField("homeTimeline")),
        onNext: ({ homeTimeline }) => sink.next(homeTimeline),
        onError: (problem) => sink.error(problem),
        onCompleted: () => sink.complete(),
      });
      return () => subscription.dispose();
    },
    onEnd,
  });

  async function next() {
    const { id, posts } = timeline();
    const variables = { id, count: COUNT, after: posts.pageInfo.endCursor };
    await fetchQuery(environment, nextPage, variables).toPromise();
  }
  return { timeline, next, close };
}
