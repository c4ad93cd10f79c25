import { useEffect, useMemo, useRef, useState } from "react";
import { collapseReposts } from "./collapse.js";
import type { TimelineEntry } from "./collapse.js";
import type { ListOwner } from "./data.js";
import * as documents from "./documents.js";
import { LISTS } from "./lists.js";
import { live } from "./live.js";
import type { LiveEvent, LiveOptions } from "./live.js";
import type { Owner } from "./pages.js";
import { asError, failure } from "./problems.js";

/** The result of a hook: a list that the hook keeps up to date. */
export interface LiveList<Data, Entry> {
  /** The data of the query, such as the post of a thread or the number of unread notifications. */
  data: Data | undefined;
  /** The entries to show. In timelines, each post is shown once: see `collapseReposts`. */
  entries: Entry[];
  /** Whether the first page is being fetched, and there is nothing to show yet. */
  loading: boolean;
  /** Why the last fetch failed, or why the list is no longer live. The entries stay. `retry` tries again. */
  error: Error | undefined;
  /** Whether there are older entries. */
  hasMore: boolean;
  /** Fetch the next page. A failure is reported in `error`. */
  loadMore: () => Promise<void>;
  isLoadingMore: boolean;
  /** Fetch the first page again. A failure is reported in `error`. A list that is no longer live becomes live again. */
  refetch: () => Promise<void>;
  /** Repeat what failed: `loadMore` or `refetch`. */
  retry: () => Promise<void>;
}

/** The operations of a list, and the variables that all of them have. */
export interface ListRequest {
  kind: ListKind;
  id?: string | null | undefined;
  kinds?: readonly string[] | null | undefined;
}

interface ListKind extends documents.Documents {
  typename: keyof typeof LISTS;
  /** Whether the operations have the id of the list's owner as a variable. */
  hasId: boolean;
  ownerOf: (data: Data) => ListOwner | null | undefined;
}

interface Data {
  viewer?: { homeTimeline?: ListOwner | null; notifications?: ListOwner | null } | null;
  node?: ListOwner | null;
  post?: ListOwner | null;
}

interface Page {
  edges: readonly { node: TimelineEntry | null }[];
  pageInfo: { hasNextPage: boolean; endCursor?: string | null };
}

export const KINDS = {
  home: { ...documents.HOME, typename: "Timeline", hasId: false, ownerOf: ({ viewer }) => viewer?.homeTimeline },
  timeline: { ...documents.TIMELINE_BY_ID, typename: "Timeline", hasId: true, ownerOf: ({ node }) => node },
  thread: { ...documents.THREAD, typename: "Post", hasId: true, ownerOf: ({ post }) => post },
  notifications: {
    ...{ ...documents.NOTIFICATIONS, typename: "NotificationFeed", hasId: false },
    ownerOf: ({ viewer }) => viewer?.notifications,
  },
} satisfies Record<string, ListKind>;

/** What a GraphQL library provides for a list. If one of `dependencies` changes, the source is that of another list. */
export interface Source {
  dependencies: readonly unknown[];
  /** The data of the query in the cache. Parts of it can be missing while it is being fetched. */
  data: unknown;
  /** Whether the data is complete, and nothing is being fetched. */
  isComplete: boolean;
  isFetching: boolean;
  error: Error | undefined;
  /** Fetch the first page from the network, put it into the cache, and return the data. */
  fetchFirst: () => Promise<unknown>;
  /** Fetch the next page into the cache, if the cached list has a next page. */
  fetchNext: (endCursorOf: (data: unknown) => string | undefined) => Promise<void>;
  /** Return what `live` needs for a list whose first page is in the cache. */
  liveOptions: (list: Owner, owner: ListOwner) => LiveSource;
}

interface Problem {
  key: number;
  error: Error;
  /** Whether fetching the next page failed. */
  isNext?: boolean;
  /** Whether the list is no longer live. */
  isOver?: boolean;
}

type LiveSource = Pick<LiveOptions<LiveEvent>, "liveCursor" | "subscribe" | "apply" | "watchPages">;

/** Return the variables of the first page of a list. Returns the same object as long as the variables are equal. */
export function useVariables(request: ListRequest, first: number, own: object | undefined): Record<string, unknown> {
  const { kind, id, kinds } = request;
  const key = JSON.stringify({ ...own, first, ...(kind.hasId && { id }), ...(kinds && { kinds }) });
  return useMemo(() => JSON.parse(key) as Record<string, unknown>, [key]);
}

/** Keep a list up to date while the component is mounted. */
export function useLiveList<Shown, Entry>(request: ListRequest, source: Source): LiveList<Shown, Entry> {
  const { kind, kinds } = request;
  const { field } = LISTS[kind.typename];
  const key = useKey(source.dependencies);
  const [last, setLast] = useState<{ key: number; data: unknown }>();
  const [problem, setProblem] = useState<Problem>();
  const [session, setSession] = useState(0);
  const [loading, setLoading] = useState<number>();
  const pending = useRef<{ key: number; done: Promise<void> }>(undefined);

  function ownerOf(data: unknown): ListOwner | undefined {
    const owner = data ? kind.ownerOf(data) : undefined;
    const isOther = kind.hasId && owner?.id !== undefined && owner.id !== request.id;
    return isOther ? undefined : (owner ?? undefined);
  }
  const pageOf = (owner: ListOwner | undefined): Page | null | undefined => (owner as Record<string, Page> | undefined)?.[field];

  // The last complete data stays on the screen while a field is missing from the cache, or cannot be fetched.
  const isGone = source.isComplete && !ownerOf(source.data);
  const isShown = isGone || pageOf(ownerOf(source.data)) != null;
  if (isShown && (last?.key !== key || last.data !== source.data)) setLast({ key, data: source.data });
  const shown = isShown ? source.data : last?.key === key ? last.data : undefined;

  const owner = ownerOf(shown);
  const id = owner?.id;
  useEffect(() => {
    if (!owner) return undefined;
    if (id === undefined) throw new Error(`The query must select the id of the ${kind.typename}.`);
    if (source.isComplete && owner.liveCursor === undefined)
      throw new Error(`The query must select liveCursor beside ${field}.`);
    const options = source.liveOptions({ __typename: kind.typename, id, kinds }, owner);
    return live({
      ...options,
      refetch: async () => ownerOf(await source.fetchFirst())?.liveCursor,
      apply(event) {
        options.apply?.(event);
        const { userId } = event as { userId?: string };
        if (event.__typename === "AuthorHidden" && userId === owner.author?.id) void attempt(source.fetchFirst);
      },
      onEnd: (cause) => void ended(cause),
    });
    // The key represents everything that the subscription depends on.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [key, owner === undefined, id, session]);

  async function ended(cause: unknown): Promise<void> {
    // The server refuses the id of an owner that was deleted or hidden. The data then shows this, so it is not an error.
    const isRefused = kind.hasId && failure(cause).code === "BAD_USER_INPUT";
    const data = isRefused ? await source.fetchFirst().catch(() => undefined) : undefined;
    if (!data || ownerOf(data)) setProblem({ key, error: asError(cause), isOver: true });
  }

  async function attempt(action: () => Promise<unknown>, isNext = false): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (cause) {
      setProblem((current) => {
        if (current && current.key > key) return current; // the problem of another list, which is on the screen now
        return { key, error: asError(cause), isNext, isOver: current?.key === key && current.isOver === true };
      });
      return false;
    }
  }

  async function refetch(): Promise<void> {
    if (!(await attempt(source.fetchFirst))) return;
    const isRestarted = problem?.key === key && problem.isOver === true;
    setProblem((current) => {
      if (current === problem) return undefined;
      return current?.key === key && isRestarted ? { ...current, isOver: false } : current; // the list has a new problem
    });
    if (isRestarted) setSession(session + 1);
  }

  async function next(): Promise<void> {
    setLoading(key);
    const fetchNext = async (): Promise<void> =>
      source.fetchNext((data) => {
        const info = pageOf(ownerOf(data))?.pageInfo;
        return info?.hasNextPage ? (info.endCursor ?? undefined) : undefined;
      });
    const isDone = await attempt(fetchNext, true);
    if (isDone) setProblem((current) => (current?.key === key && !current.isOver ? undefined : current));
    if (pending.current?.key === key) pending.current = undefined;
    setLoading((current) => (current === key ? undefined : current));
  }

  function loadMore(): Promise<void> {
    if (pending.current?.key !== key) pending.current = { key, done: next() };
    return pending.current.done;
  }

  const found = source.isComplete && source.data ? ownerOf(source.data) : undefined;
  const wrongType = useWrongType(kind, found && pageOf(found) === undefined, found?.__typename);
  const page = pageOf(owner);
  const edges = page?.edges;
  const entries = useMemo(() => {
    const nodes = (edges ?? []).flatMap(({ node }) => node ?? []); // another part of the app may have deleted a node
    return (kind.typename === "Timeline" ? collapseReposts(nodes) : nodes) as Entry[];
  }, [edges, kind]);
  const error = (problem?.key === key ? problem.error : undefined) ?? source.error ?? wrongType;
  return {
    data: shown as Shown | undefined,
    entries,
    loading: shown === undefined && source.isFetching,
    error,
    hasMore: page?.pageInfo.hasNextPage === true,
    loadMore,
    isLoadingMore: loading === key,
    refetch,
    retry: problem?.key === key && problem.isNext && !problem.isOver ? loadMore : refetch,
  };
}

/** Return an error if the id belongs to an object that has no such list. */
function useWrongType({ hasId, typename }: ListKind, isWrong = false, found = ""): Error | undefined {
  return useMemo(() => {
    if (!isWrong || !hasId) return undefined;
    return new Error(`The id is ${found && `that of a ${found}, `}not that of a ${typename}.`);
  }, [hasId, typename, isWrong, found]);
}

/** Return a number that increases whenever one of the values changes. */
function useKey(values: readonly unknown[]): number {
  const [last, setLast] = useState({ key: 0, values });
  if (values.every((value, index) => value === last.values[index])) return last.key;
  setLast({ key: last.key + 1, values });
  return last.key + 1;
}
