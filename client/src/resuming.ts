/** The methods of a client that `resuming` needs. Clients of graphql-ws and graphql-sse have them. */
interface SubscribingClient {
  subscribe: (request: never, sink: never, ...rest: never[]) => () => void;
  iterate: (request: never, ...rest: never[]) => AsyncIterableIterator<unknown>;
}

interface Result {
  data?: Record<string, unknown> | null;
}

interface Sink {
  next(result: Result): void;
  error(problem: unknown): void;
  complete(): void;
}

interface Request {
  variables?: Record<string, unknown> | null;
}

interface CloseEvent {
  code: number;
  reason: string;
}

/** The error of a subscription whose WebSocket the server has closed, when the client does not reconnect. */
export class SocketClosed extends Error {
  readonly code: number;

  constructor({ code, reason }: CloseEvent) {
    const cause = reason && `: ${reason.replace(/\.$/, "")}`;
    super(`The WebSocket was closed with code ${String(code)}${cause}.`);
    this.name = "SocketClosed";
    this.code = code;
  }
}

type Subscribe = (request: Request, sink: Sink, ...rest: unknown[]) => () => void;

/**
 * Return a client that, each time it reconnects, sends the cursor of the last event as the variable `after`.
 *
 * For clients of graphql-ws and graphql-sse. The document must select `cursor` and declare the variable `$after`.
 *
 * A close event that ends a subscription becomes a `SocketClosed`: Apollo Client and Relay pass on only errors.
 */
export function resuming<Client extends SubscribingClient>(client: Client): Client {
  const start = client.subscribe as unknown as Subscribe;
  const subscribe: Subscribe = (request, sink, ...rest) => {
    const variables = { ...request.variables };
    const remembering: Sink = {
      next(result) {
        const cursor = lastCursor(result);
        if (cursor !== undefined) variables["after"] = cursor; // the client sends this object again
        sink.next(result);
      },
      error: (problem) => sink.error(isCloseEvent(problem) ? new SocketClosed(problem) : problem),
      complete: () => sink.complete(),
    };
    return start({ ...request, variables }, remembering, ...rest);
  };
  const iterate = (request: Request, ...rest: unknown[]) =>
    iterated((sink) => subscribe(request, sink, ...rest));
  return { ...client, subscribe, iterate };
}

function isCloseEvent(problem: unknown): problem is CloseEvent {
  if (typeof problem !== "object" || problem === null || problem instanceof Error) return false;
  return "code" in problem && typeof problem.code === "number" && "reason" in problem && typeof problem.reason === "string";
}

function lastCursor(result: Result): string | undefined {
  let last: string | undefined;
  for (const event of Object.values(result.data ?? {})) {
    if (typeof event === "object" && event !== null && "cursor" in event && typeof event.cursor === "string") {
      last = event.cursor;
    }
  }
  return last;
}

/** Return the results of a subscription as an iterator. Its `return` ends the subscription. */
function iterated(subscribe: (sink: Sink) => () => void): AsyncIterableIterator<Result> {
  const results: Result[] = [];
  let problem: { value: unknown } | undefined;
  let isDone = false;
  let wake = (): void => undefined;
  const end = subscribe({
    next(result) {
      results.push(result);
      wake();
    },
    error(value) {
      problem = { value };
      wake();
    },
    complete() {
      isDone = true;
      wake();
    },
  });
  const stop = (): Promise<IteratorReturnResult<undefined>> => {
    isDone = true;
    results.length = 0;
    end();
    wake();
    return Promise.resolve({ done: true, value: undefined });
  };
  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      for (;;) {
        const value = results.shift();
        if (value !== undefined) return { done: false, value };
        if (problem && !isDone) {
          isDone = true;
          throw problem.value;
        }
        if (isDone) return { done: true, value: undefined };
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
    return: stop,
    throw: stop,
  };
}
