// One WebSocket for all subscriptions, which reconnects automatically.
import { createClient } from "graphql-ws";
import { PING, headers, url } from "./home.mjs";
import { pause, resuming } from "./resuming.mjs";

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
