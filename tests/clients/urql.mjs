// A home timeline with urql, over a WebSocket: node urql.mjs URL TOKEN
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { LIVE, PAGE, fail, headers, open, take, url } from "./home.mjs";
import { socket } from "./socket.mjs";

const client = new Client({
  url,
  fetchOptions: { headers },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: (request) => ({
        subscribe: (sink) => ({ unsubscribe: socket.subscribe(request, sink) }),
      }),
    }),
  ],
});

const page = await client.query(PAGE, {});
client
  .subscription(LIVE, { after: open(page.data) })
  .subscribe(({ data, error }) => (error ? fail(error) : take(data.homeTimeline)));
