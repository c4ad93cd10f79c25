// A screen and a live subscription of Relay, by the ids that relay-compiler gave them: node relay.mjs URL TOKEN FOLDER
import { createClient } from "graphql-ws";
import relay from "relay-runtime";
import { headers, login as folder, url } from "./home.mjs";

const { Environment, Network, Observable, RecordSource, Store, fetchQuery, requestSubscription } = relay;
const socket = createClient({ url: url.replace("http", "ws"), connectionParams: headers });

async function fetchById({ id }, variables) {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ documentId: id, variables }),
  });
  return response.json();
}

function subscribeById({ id }, variables) {
  return Observable.create((sink) => socket.subscribe({ query: "", documentId: id, variables }, sink));
}

const environment = new Environment({
  network: Network.create(fetchById, subscribeById),
  store: new Store(new RecordSource()),
});

const artifact = async (name) => (await import(`${folder}/src/__generated__/${name}.graphql.js`)).default;
const screen = await artifact("HomeScreenQuery");
const answer = await fetchById(screen.params, { count: 10 });
await fetchQuery(environment, screen, { count: 10 }).toPromise();

const live = await artifact("HomeFeedSubscription");
const event = await new Promise((resolve, reject) => {
  requestSubscription(environment, { subscription: live, variables: {}, onNext: resolve, onError: reject });
});
await socket.dispose();

const records = Object.values(environment.getStore().getSource().toJSON());
console.log(
  JSON.stringify({
    id: screen.params.id,
    text: screen.params.text,
    answer,
    entries: records.filter(({ __typename }) => __typename === "Post" || __typename === "Repost").length,
    event: event.homeTimeline.__typename,
  }),
);
