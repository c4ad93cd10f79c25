import type { DocumentNode } from "graphql";
import type { HomeEntry, HomeTimelineData, NotificationOf, NotificationsData } from "./data.js";
import type { ReplyOf, ThreadData, TimelineData, TimelineEntryOf } from "./data.js";
import { KINDS } from "./react.js";
import type { ListRequest, LiveList } from "./react.js";

/** A document with the type of its data, as GraphQL Code Generator and gql.tada generate it: a `TypedDocumentNode`. */
interface TypedDocument<Data> extends DocumentNode {
  __apiType?: (variables: never) => Data;
}

/** The options of all hooks. If a document is omitted, the hook uses its default one. */
export interface ListOptions<Data> {
  /** The query for a page. Define it outside the component. */
  query?: TypedDocument<Data>;
  /** The subscription, which selects the same fields of entries as the query. */
  subscription?: DocumentNode;
  /** The size of a page: the variable `$first`. */
  first?: number;
  /** Further variables of both documents. */
  variables?: Record<string, unknown>;
}

type UseList = <Data, Entry>(request: ListRequest, options: ListOptions<Data>) => LiveList<Data, Entry>;

/** Return the hooks for a GraphQL library. */
export function hooksOf(useList: UseList) {
  return {
    /** Return the viewer's home timeline, and keep it up to date. */
    useHomeTimeline: <Data = HomeTimelineData>(options: ListOptions<Data> = {}): LiveList<Data, HomeEntry<Data>> =>
      useList({ kind: KINDS.home }, options),

    /** Return the timeline of a user or a list, and keep it up to date. Without an id, nothing is fetched yet. */
    useTimeline: <Data = TimelineData>(
      id: string | null | undefined,
      options: ListOptions<Data> = {},
    ): LiveList<Data, TimelineEntryOf<Data>> => useList({ kind: KINDS.timeline, id }, options),

    /** Return a post with its direct replies, and keep both up to date. Without an id, nothing is fetched yet. */
    useThread: <Data = ThreadData>(
      id: string | null | undefined,
      options: ListOptions<Data> = {},
    ): LiveList<Data, ReplyOf<Data>> => useList({ kind: KINDS.thread, id }, options),

    /** Return the viewer's notifications, or those of some `kinds`, and keep them up to date. */
    useNotifications: <Data = NotificationsData>({
      kinds,
      ...options
    }: ListOptions<Data> & { kinds?: readonly string[] | null } = {}): LiveList<Data, NotificationOf<Data>> =>
      useList({ kind: KINDS.notifications, kinds }, options),
  };
}
