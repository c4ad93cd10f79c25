import { pause, resuming } from "@fanline/client";
import { createClient } from "graphql-ws";

export const url = "http://localhost:8000/graphql";
export const headers = { authorization: "Bearer <token>" };
const PING = 10_000; // milliseconds

let silence: ReturnType<typeof setTimeout> | undefined;
const client = createClient({
  url: url.replace("http", "ws"),
  connectionParams: headers,
  retryAttempts: Infinity,
  retryWait: pause,
  shouldRetry: (problem) => (problem as CloseEvent).code !== 4403, // the session is over
  keepAlive: PING,
  on: {
    ping: (received) => received || (silence = setTimeout(() => client.terminate(), PING)),
    pong: (received) => received && clearTimeout(silence),
    closed: () => clearTimeout(silence),
  },
});

export const socket = resuming(client);
