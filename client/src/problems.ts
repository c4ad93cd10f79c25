/** Why an operation failed, in terms that a client can act on. */
export interface Failure {
  /** The `extensions.code` of the first GraphQL error, or undefined if the connection failed. */
  code: string | undefined;
  /** The seconds after which the server accepts the operation again, or undefined. */
  retryAfter: number | undefined;
  /** Whether the same operation can succeed later. */
  canRetry: boolean;
}

interface GraphQLProblem {
  message?: unknown;
  extensions?: { code?: unknown; retryAfter?: unknown };
}

/** Codes of errors that the same operation would return again. */
const FINAL = new Set([
  "UNAUTHENTICATED",
  "FORBIDDEN",
  "BAD_USER_INPUT",
  "COST_LIMIT",
  "GRAPHQL_PARSE_FAILED",
  "GRAPHQL_VALIDATION_FAILED",
]);

/** WebSocket close codes after which the client must not reconnect with the same session or request. */
const SESSION_OVER = 4403;
const FIRST_FINAL_CLOSE = 4400;
const LAST_FINAL_CLOSE = 4499;

/**
 * Return why an operation failed.
 *
 * Accepts what clients report: an array of GraphQL errors (graphql-ws), an error of urql (`graphQLErrors`,
 * `networkError`), of Apollo Client (`errors`) or of Relay (`source.errors`), a `SocketClosed` or the close event of a
 * WebSocket, and any other error.
 */
export function failure(problem: unknown): Failure {
  const [first] = graphqlErrors(problem);
  const { code, retryAfter } = first?.extensions ?? {};
  if (typeof code === "string") {
    return { code, retryAfter: typeof retryAfter === "number" ? retryAfter : undefined, canRetry: !FINAL.has(code) };
  }
  const closes = [problem, field(problem, "networkError"), field(problem, "cause")].map((each) => field(each, "code"));
  const close = closes.find((each) => typeof each === "number");
  if (close === SESSION_OVER) return { code: "UNAUTHENTICATED", retryAfter: undefined, canRetry: false };
  const isFinal = typeof close === "number" && close >= FIRST_FINAL_CLOSE && close <= LAST_FINAL_CLOSE;
  return { code: undefined, retryAfter: undefined, canRetry: !isFinal };
}

/** Return the problem itself if it is an Error, and otherwise an Error that wraps it. `failure` accepts both. */
export function asError(problem: unknown): Error {
  if (problem instanceof Error) return problem;
  const [first] = graphqlErrors(problem);
  const message = typeof first?.message === "string" ? first.message : "The subscription has ended.";
  return new Error(message, { cause: problem });
}

function graphqlErrors(problem: unknown): GraphQLProblem[] {
  const candidates = [
    problem,
    field(problem, "graphQLErrors"),
    field(problem, "errors"),
    field(field(problem, "source"), "errors"),
    field(problem, "cause"),
  ];
  return (candidates.find((each) => Array.isArray(each) && each.length > 0) as GraphQLProblem[] | undefined) ?? [];
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
