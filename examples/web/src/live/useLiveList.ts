import { failure, live } from "@fanline/client";
import type { LiveEvent } from "@fanline/client";
import { applyEvent, liveCursorOf, watchPages } from "@fanline/client/relay";
import { useEffect, useEffectEvent } from "react";
import { requestSubscription, useRelayEnvironment } from "react-relay";
import type { GraphQLTaggedNode } from "react-relay";
import type { OperationType } from "relay-runtime";
import { forget } from "../post/connections";
import { sessionChanged } from "../session/changes";

interface Edge {
  readonly node: {
    readonly __typename: string;
    readonly id: string;
    readonly author: { readonly id: string };
  };
}

/** The fields that the hook reads from an event of a timeline or a thread. */
export interface ListEvent extends LiveEvent {
  readonly timelineEdge?: Edge;
  readonly postEdge?: Edge;
  readonly postId?: string;
  readonly repostId?: string;
  readonly userId?: string;
}

/** A subscription with the variables `id` and `after`, or only `after`. */
export interface Stream<S extends OperationType> {
  subscription: GraphQLTaggedNode;
  field: string;
  eventOf(data: S["response"]): ListEvent;
}

export interface Options {
  /** The id of the object that the events are about, if there are several such streams. */
  id?: string;
  connection: string;
  viewerId: string;
  /** The cursor of the data on the screen, for a list that is not in the store. Later values are ignored. */
  liveCursor?: string | null | undefined;
  /** Fetch the pages of the list, write them into the store, and return the cursor of the first one. */
  refetch: () => Promise<string | null | undefined>;
  /** Return whether an event changes more than the list, so that the pages must be fetched again. */
  concernsMore?: (event: ListEvent) => boolean;
  /** Hold back an added entry, and announce it. */
  hold?: (id: string, isAnnounced: boolean) => void;
}

/** Keep a list of posts in the store up to date with a stream that begins where its first page ends. */
export function useLiveList<S extends OperationType>(stream: Stream<S>, options: Options): void {
  const environment = useRelayEnvironment();
  const { id, connection } = options;
  const start = useEffectEvent(() => liveCursorOf(environment, connection) ?? options.liveCursor);
  const fetchAgain = useEffectEvent(options.refetch);
  const concernsMore = useEffectEvent((event: ListEvent) => options.concernsMore?.(event) ?? false);

  const added = useEffectEvent(({ node }: Edge) => {
    // The viewer's own posts appear at once. The viewer's own repost would replace the post that the viewer is looking
    // at.
    const isOwn = node.author.id === options.viewerId;
    if (!isOwn || node.__typename === "Repost") options.hold?.(node.id, !isOwn);
  });

  useEffect(() => {
    let hasChanged = false;
    return live<ListEvent>({
      liveCursor: start(),
      refetch: () => fetchAgain(),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<S>(environment, {
          subscription: stream.subscription,
          variables: { id, after },
          updater(store, data) {
            hasChanged = applyEvent(store, connection, store.getRootField(stream.field));
            const { postId, repostId } = data ? stream.eventOf(data) : {};
            const removed = postId ?? repostId;
            if (removed) forget(environment, store, removed);
          },
          onNext(data) {
            if (!data) return;
            const event = stream.eventOf(data);
            sink.next(concernsMore(event) ? { ...event, __typename: "Gap" } : event);
          },
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      apply({ timelineEdge, postEdge }) {
        // The updater has changed the store already, unless it already had the entry or will get it with a next page.
        const edge = timelineEdge ?? postEdge;
        if (edge && hasChanged) added(edge);
      },
      watchPages: (arrived) => watchPages(connection, arrived),
      onEnd(problem) {
        const { code } = failure(problem);
        if (code === "UNAUTHENTICATED") sessionChanged();
        else if (code === "BAD_USER_INPUT") void fetchAgain().catch(() => undefined); // its owner is gone: the screen says so
      },
    });
  }, [environment, stream, id, connection]);
}
