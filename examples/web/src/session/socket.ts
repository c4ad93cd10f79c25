import { pause } from "@fanline/client";
import { createClient } from "graphql-ws";
import type { Client } from "graphql-ws";

const SESSION_OVER = 4403;
const NORMAL = 1000;
const PING = 10_000;

interface Options {
  url: string;
  /** Called when the connection is lost, and when it is back. */
  onChange: (isLost: boolean) => void;
  /** Called when the server refuses the session of the socket. */
  onSessionOver: () => Promise<void>;
}

/** Open one socket for all subscriptions, when the first one starts. Pings detect a dead connection. */
export function openSocket({ url, onChange, onSessionOver }: Options): Client {
  let silence: ReturnType<typeof setTimeout> | undefined;
  const socket = createClient({
    url,
    retryAttempts: Infinity,
    retryWait: (attempts) => Promise.race([pause(attempts), online()]),
    shouldRetry: () => true,
    keepAlive: PING,
    on: {
      connected: () => onChange(false),
      ping: (isReceived) => {
        if (!isReceived) silence = setTimeout(() => socket.terminate(), PING);
      },
      pong: (isReceived) => {
        if (isReceived) clearTimeout(silence);
      },
      closed: (event) => {
        clearTimeout(silence);
        const code = event instanceof CloseEvent ? event.code : undefined;
        if (code === SESSION_OVER) void onSessionOver();
        else if (code !== NORMAL) onChange(true);
      },
    },
  });
  return socket;
}

/** Wait until the browser has a network again. */
function online(): Promise<void> {
  return new Promise((resolve) => addEventListener("online", () => resolve(), { once: true }));
}
