// One WebSocket for all subscriptions, which reconnects automatically.
import { pause, resuming } from "@fanline/client";
import { createClient } from "graphql-ws";
import { PING, headers, url } from "./home.mjs";

let silence;
const client = createClient({
  url: url.replace("http", "ws"),
  connectionParams: headers,
  retryAttempts: Infinity,
  retryWait: pause,
  shouldRetry: (problem) => problem.code !== 4403, // the session is over
  keepAlive: PING,
  on: {
    ping: (received) => received || (silence = setTimeout(() => client.terminate(), PING)),
    pong: (received) => received && clearTimeout(silence),
    closed: () => clearTimeout(silence),
  },
});

export const socket = resuming(client);
