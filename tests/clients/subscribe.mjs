// Listens to a home timeline with a client from npm: node subscribe.mjs graphql-ws|graphql-sse URL TOKEN.
// Prints each event as a line of JSON until the first post, then leaves.
import * as sse from "graphql-sse";
import * as ws from "graphql-ws";
import WebSocket from "ws";

const [library, url, token] = process.argv.slice(2);
const authorization = `Bearer ${token}`;
const client =
  library === "graphql-ws"
    ? ws.createClient({
        url: url.replace("http", "ws"),
        webSocketImpl: WebSocket,
        connectionParams: { authorization },
        retryAttempts: 0,
      })
    : sse.createClient({ url, headers: { authorization }, retryAttempts: 0 });

const query = `subscription { homeTimeline { __typename cursor ... on PostAdded { edge { node { text } } } } }`;
for await (const { data, errors } of client.iterate({ query })) {
  console.log(JSON.stringify(errors ?? data.homeTimeline));
  if (errors || data.homeTimeline.__typename === "PostAdded") break;
}
client.dispose();
