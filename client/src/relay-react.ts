import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import reactRelay from "react-relay";
import relay from "relay-runtime";
import type { Environment, GraphQLTaggedNode, NormalizationLinkedField, OperationDescriptor } from "relay-runtime";
import type { OperationType, Snapshot, Variables } from "relay-runtime";
import type { HomeEntry, NotificationOf, ReplyOf, TimelineEntryOf } from "./data.js";
import { LISTS } from "./lists.js";
import type { LiveEvent } from "./live.js";
import { asError } from "./problems.js";
import { KINDS, useLiveList, useVariables } from "./react.js";
import type { ListRequest, LiveList } from "./react.js";
import { applyEvent, liveCursorOf, watchPages } from "./relay.js";

export type { LiveList } from "./react.js";

const { __internal, commitLocalUpdate, createOperationDescriptor, getRequest, recycleNodesInto, requestSubscription } = relay;
const { useRelayEnvironment } = reactRelay;

const INCOMPLETE = "The response lacks fields of the query.";
const NO_HANDLER =
  "The environment needs the handlerProvider withLiveCursors(DefaultHandlerProvider), and liveCursor needs the list's arguments.";

/** The options of all hooks. */
export interface RelayListOptions {
  /** The query for a page. Its list is a `@connection` that selects `__id`. */
  query: GraphQLTaggedNode;
  subscription: GraphQLTaggedNode;
  /** The size of a page: the variable `$first`. */
  first?: number;
  /** Further variables of both documents. */
  variables?: Record<string, unknown>;
}

/** Return the viewer's home timeline, and keep it up to date. */
export function useHomeTimeline<Query extends OperationType>(
  options: RelayListOptions,
): LiveList<Query["response"], HomeEntry<Query["response"]>> {
  return useList({ kind: KINDS.home }, options);
}

/** Return the timeline of a user or a list, and keep it up to date. Without an id, nothing is fetched yet. */
export function useTimeline<Query extends OperationType>(
  id: string | null | undefined,
  options: RelayListOptions,
): LiveList<Query["response"], TimelineEntryOf<Query["response"]>> {
  return useList({ kind: KINDS.timeline, id }, options);
}

/** Return a post with its direct replies, and keep both up to date. Without an id, nothing is fetched yet. */
export function useThread<Query extends OperationType>(
  id: string | null | undefined,
  options: RelayListOptions,
): LiveList<Query["response"], ReplyOf<Query["response"]>> {
  return useList({ kind: KINDS.thread, id }, options);
}

/** Return the viewer's notifications, or those of some `kinds`, and keep them up to date. */
export function useNotifications<Query extends OperationType>({
  kinds,
  ...options
}: RelayListOptions & { kinds?: readonly string[] | null }): LiveList<Query["response"], NotificationOf<Query["response"]>> {
  return useList({ kind: KINDS.notifications, kinds }, options);
}

function useList<Data, Entry>(request: ListRequest, options: RelayListOptions): LiveList<Data, Entry> {
  const { kind, id } = request;
  const { query, subscription } = options;
  const environment = useRelayEnvironment();
  const variables = useVariables(request, options.first ?? 20, options.variables);
  const stored = useMemo(() => new StoredQuery(environment, query, variables), [environment, query, variables]);
  const snapshot = useSyncExternalStore(stored.subscribe, stored.read, stored.read);
  const [last, setLast] = useState<Fetched>();

  const fetched = last?.of === stored ? last : undefined;
  const isSkipped = kind.hasId && id == null;
  const isMissing = snapshot.isMissingData || !(stored.wasAvailable || fetched);
  const data = isSkipped || isMissing ? undefined : snapshot.data;

  useEffect(() => {
    if (isSkipped || !isMissing) return;
    stored.fetch().then(
      () => setLast(newer({ of: stored, ...(stored.read().isMissingData && { error: new Error(INCOMPLETE) }) })),
      (cause: unknown) => setLast(newer({ of: stored, error: asError(cause) })),
    );
  }, [stored, isSkipped, isMissing]);

  return useLiveList(request, {
    dependencies: [stored, subscription],
    data,
    isComplete: data !== undefined && !fetched?.error,
    isFetching: !isSkipped && isMissing && !fetched,
    error: fetched?.error,
    async fetchFirst() {
      const page = await stored.fetch();
      setLast(newer({ of: stored }));
      return page;
    },
    async fetchNext(endCursorOf) {
      const after = endCursorOf(stored.read().data);
      if (after) await stored.fetch({ after });
    },
    liveOptions({ __typename, id, kinds }, owner) {
      const { field } = LISTS[__typename as keyof typeof LISTS];
      const connection = (owner as Record<string, { __id?: string }>)[field]?.__id;
      if (connection === undefined) throw new Error(`The query must select ${field} { __id }.`);
      const liveCursor = liveCursorOf(environment, connection);
      if (owner.liveCursor != null && liveCursor === undefined) throw new Error(NO_HANDLER);
      const root = getRequest(subscription).operation.selections[0] as NormalizationLinkedField;
      return {
        liveCursor,
        subscribe(after, sink) {
          const { dispose } = requestSubscription(environment, {
            subscription,
            variables: { ...variables, after },
            updater: (store) => applyEvent(store, connection, store.getRootField(root.name), kinds),
            onNext: (data) => sink.next(Object.values(data ?? {})[0] as LiveEvent),
            onError: (problem) => sink.error(problem),
            onCompleted: () => sink.complete(),
          });
          return dispose;
        },
        apply(event) {
          const { postId } = event as { postId?: string };
          if (event.__typename !== "PostRemoved" || postId !== id) return;
          // Other lists may still hold the record of the post.
          commitLocalUpdate(environment, (store) => store.getRoot().setValue(null, "post", { id }));
        },
        watchPages: (arrived) => watchPages(connection, arrived),
      };
    },
  });
}

interface Fetched {
  of: StoredQuery;
  error?: Error;
}

/** Return a state update that keeps the last fetch if it belongs to a newer list. */
function newer(fetched: Fetched): (last: Fetched | undefined) => Fetched {
  return (last) => (last && last.of.number > fetched.of.number ? last : fetched);
}

let queries = 0;

/** The first page of a list in Relay's store, as `useSyncExternalStore` reads it. */
class StoredQuery {
  readonly number = ++queries;
  readonly wasAvailable: boolean;
  readonly #environment: Environment;
  readonly #query: GraphQLTaggedNode;
  readonly #operation: OperationDescriptor;
  #snapshot: Snapshot;

  constructor(environment: Environment, query: GraphQLTaggedNode, variables: Variables) {
    this.#environment = environment;
    this.#query = query;
    this.#operation = createOperationDescriptor(getRequest(query), variables);
    this.#snapshot = environment.lookup(this.#operation.fragment);
    this.wasAvailable = environment.check(this.#operation).status === "available";
  }

  readonly read = (): Snapshot => this.#snapshot;

  /**
   * Retain the query's records in the store, and call a function when they change. Return a function that ends both.
   */
  readonly subscribe = (changed: () => void): (() => void) => {
    const retained = this.#environment.retain(this.#operation);
    const snapshot = this.#environment.lookup(this.#operation.fragment);
    this.#snapshot = { ...snapshot, data: recycleNodesInto(this.#snapshot.data, snapshot.data) };
    const watching = this.#environment.subscribe(this.#snapshot, (next) => {
      this.#snapshot = next;
      changed();
    });
    return () => {
      watching.dispose();
      retained.dispose();
    };
  };

  /**
   * Fetch the page, or the one after a cursor, into the store, and return its data. Throw if the response has errors,
   * even if it also has data: Relay's own `fetchQuery` reports these errors only for their fields.
   */
  async fetch(page: { after?: string } = {}): Promise<unknown> {
    const variables = { ...this.#operation.request.variables, ...page };
    const operation = createOperationDescriptor(getRequest(this.#query), variables, { force: true });
    const response = await __internal.fetchQuery(this.#environment, operation).toPromise();
    for (const { errors } of [response ?? []].flat() as { errors?: readonly { message: string }[] }[])
      if (errors?.[0]) throw Object.assign(new Error(errors[0].message), { errors });
    return this.#environment.lookup(operation.fragment).data;
  }
}
