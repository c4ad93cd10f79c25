import { failure, live } from "@fanline/client";
import { useEffect, useEffectEvent } from "react";
import { graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { addPostOf, forget } from "../post/connections";
import { sessionChanged } from "../session/changes";
import type { usePostEventsSubscription } from "./__generated__/usePostEventsSubscription.graphql";

type Variables = usePostEventsSubscription["variables"];
type Event = usePostEventsSubscription["response"]["events"];
type Post = NonNullable<Event["post"]>;

const subscription = graphql`
  subscription usePostEventsSubscription($filter: EventFilter!, $after: String) {
    events(filter: $filter, after: $after) {
      __typename
      cursor
      ... on PostAdded {
        post {
          id
          author {
            id
          }
          ...PostCard_post
        }
        timelineEdge {
          cursor
        }
      }
      ... on PostRemoved {
        postId
      }
    }
  }
`;

interface Options {
  connection: string;
  /** Which posts to receive. */
  filter: Variables["filter"];
  /**
   * The cursor of the page in the store: the events after it are repeated whenever a new page has overwritten the list.
   */
  liveCursor: string | null | undefined;
  /** Fetch the first page from the network, and return its cursor. Called if events are missing. */
  refetch: () => Promise<string | null | undefined>;
  /** Called with each post that is added. */
  onPost: (post: Post) => void;
}

/** Add the new posts of a stream to a list, and remove those that are deleted. */
export function usePostEvents({ connection, filter, liveCursor, refetch, onPost }: Options): void {
  const environment = useRelayEnvironment();
  const key = JSON.stringify({ ...filter, kinds: ["POST_ADDED", "POST_REMOVED"] });
  const added = useEffectEvent(onPost);
  const fetchAgain = useEffectEvent(refetch);

  useEffect(() => {
    let addedPost: Post | undefined;
    return live<Event>({
      liveCursor,
      refetch: () => fetchAgain(),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<usePostEventsSubscription>(environment, {
          subscription,
          variables: { filter: JSON.parse(key) as Variables["filter"], after },
          updater(store, data) {
            const { post, postId } = data?.events ?? {};
            const isAdded = post && addPostOf(store.getRootField("events"), store, connection);
            addedPost = isAdded ? post : undefined;
            if (postId) forget(environment, store, postId);
          },
          onNext(data) {
            if (!data) return;
            sink.next(data.events);
            if (addedPost) added(addedPost);
          },
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, connection, key, liveCursor]);
}
