import { failure, live } from "@fanline/client";
import type { LiveEvent } from "@fanline/client";
import { useEffect, useEffectEvent, useState } from "react";
import { graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { sessionChanged } from "../session/changes";
import type { useAuthorEventsSubscription } from "./__generated__/useAuthorEventsSubscription.graphql";

const subscription = graphql`
  subscription useAuthorEventsSubscription($after: String) {
    homeTimeline(after: $after) {
      __typename
      cursor
      ... on AuthorAdded {
        userId
      }
      ... on AuthorRemoved {
        userId
      }
      ... on AuthorHidden {
        userId
      }
    }
  }
`;

interface Options {
  userId: string | undefined;
  /** The cursor of the data in the store. Later values are ignored, because the hook follows the events. */
  liveCursor: string | null | undefined;
  /** Fetch the user from the network, and return the cursor. */
  refetch: () => Promise<string | null | undefined>;
}

/** Fetch a user again at each change between the user and the viewer, such as a block by either, and at a deletion. */
export function useAuthorEvents({ userId, liveCursor, refetch }: Options): void {
  const environment = useRelayEnvironment();
  const [frozen, setFrozen] = useState(liveCursor);
  if (frozen === undefined && liveCursor !== undefined) setFrozen(liveCursor);
  const fetchAgain = useEffectEvent(refetch);

  useEffect(() => {
    if (userId === undefined || frozen === undefined) return undefined;
    return live<LiveEvent>({
      liveCursor: frozen,
      refetch: () => fetchAgain(),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<useAuthorEventsSubscription>(environment, {
          subscription,
          variables: { after },
          onNext(data) {
            if (!data) return;
            const { __typename, cursor, userId: author } = data.homeTimeline;
            const isNews = author === userId || __typename === "Gap";
            sink.next({ __typename: isNews ? "Gap" : "Checkpoint", cursor });
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
  }, [environment, userId, frozen]);
}
