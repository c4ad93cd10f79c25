import { failure, pause, resuming } from "@fanline/client";
import { withLiveCursors } from "@fanline/client/relay";
import type { Client } from "graphql-ws";
import { fetchQuery, graphql } from "react-relay";
import { DefaultHandlerProvider, Environment, Network, Observable, RecordSource, Store } from "relay-runtime";
import type { FetchFunction, GraphQLResponse, SubscribeFunction } from "relay-runtime";
import { sessionChanged } from "./changes";
import { Refusal } from "./refusal";
import { openSocket } from "./socket";
import { Status } from "./status";
import type { networkSessionQuery } from "./__generated__/networkSessionQuery.graphql";

const ENDPOINT = "/graphql";

/** A Relay environment and the socket that belongs to it. They serve one session. */
export interface Connection {
  readonly number: number;
  readonly environment: Environment;
  readonly status: Status;
  readonly close: () => void;
}

let last = 0;

export function connect(): Connection {
  let isClosed = false;
  const sessionOver = (): void => {
    if (!isClosed) sessionChanged(); // late answers say nothing about the next session
  };
  const status = new Status();
  const url = new URL(ENDPOINT, location.href);
  url.protocol = url.protocol.replace("http", "ws");
  const socket = openSocket({
    url: url.href,
    onChange: status.set,
    async onSessionOver() {
      await pause(1); // a log-out in this browser announces itself
      if (!isClosed && !(await hasViewer(environment))) sessionOver();
    },
  });
  const environment = new Environment({
    network: Network.create(fetchWith(sessionOver), subscribeWith(resuming(socket))),
    handlerProvider: withLiveCursors(DefaultHandlerProvider),
    store: new Store(new RecordSource(), { gcReleaseBufferSize: 20 }),
  });
  const close = (): void => {
    isClosed = true;
    Promise.resolve(socket.dispose()).catch(() => undefined); // it fails while it waits to connect again
  };
  return { number: ++last, environment, status, close };
}

function fetchWith(sessionOver: () => void): FetchFunction {
  return async ({ name, text, operationKind }, variables, { metadata }) => {
    const response = await fetch(ENDPOINT, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/graphql-response+json, application/json",
        "fanline-session": "cookie", // keeps the token in a cookie that scripts cannot read
      },
      body: JSON.stringify({ operationName: name, query: text, variables }),
    });
    if (response.status === 401) sessionOver(); // the server has removed the cookie
    if (!response.headers.get("content-type")?.includes("json")) {
      throw new Error(`The server does not answer (status ${String(response.status)}). Try again later.`);
    }
    const result = (await response.json()) as GraphQLResponse;
    if (operationKind === "mutation") requirePayload(result);
    const required = metadata?.["requires"];
    if (typeof required === "string") requireField(result, required);
    return result;
  };
}

/** Relay reports a mutation whose payload is null as completed. With this, `onError` is called for each failure. */
function requirePayload(result: GraphQLResponse): void {
  if (!("errors" in result) || Object.values(result.data ?? {}).some(Boolean)) return;
  throw Object.assign(new Error("The server refused the request."), { errors: result.errors });
}

/** Relay drops the reason why a field is null. With this, a query whose input is refused fails with the reason. */
function requireField(result: GraphQLResponse, name: string): void {
  if (!("errors" in result) || !result.errors?.length || result.data?.[name]) return;
  const [error] = result.errors;
  if (error && failure(result).code === "BAD_USER_INPUT") throw new Refusal(error.message);
}

function subscribeWith(socket: Client): SubscribeFunction {
  return ({ name, text }, variables) =>
    Observable.create<GraphQLResponse>((sink) =>
      socket.subscribe(
        { operationName: name, query: text ?? "", variables },
        {
          next: (result) => sink.next(result as GraphQLResponse),
          error: (problem) => sink.error(problem instanceof Error ? problem : asError(problem)),
          complete: () => sink.complete(),
        },
      ),
    );
}

/** Return an Error, as Relay requires, with the cause and the close code, which `live` needs. */
function asError(problem: unknown): Error {
  const code = problem instanceof CloseEvent ? problem.code : undefined;
  return Object.assign(new Error("The subscription failed."), { cause: problem, code });
}

/**
 * Return whether the server still knows the session.
 *
 * A socket also closes when the token with which it was opened expires, although the cookie has a newer one.
 */
async function hasViewer(environment: Environment): Promise<boolean> {
  const query = graphql`
    query networkSessionQuery {
      viewer {
        id
      }
    }
  `;
  try {
    const data = await fetchQuery<networkSessionQuery>(environment, query, {}).toPromise();
    return Boolean(data?.viewer);
  } catch {
    return true; // unknown: the socket connects again, and the server repeats its answer
  }
}
