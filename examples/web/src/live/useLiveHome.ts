import { failure, live } from "@fanline/client";
import { applyEvent } from "@fanline/client/relay";
import { useEffect, useEffectEvent, useState } from "react";
import { fetchQuery, graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { forgetPost } from "../post/connections";
import { sessionChanged } from "../session/changes";
import type { useLiveHomeQuery } from "./__generated__/useLiveHomeQuery.graphql";
import type { useLiveHomeSubscription } from "./__generated__/useLiveHomeSubscription.graphql";

export const PAGE = 20;
const LARGEST_PAGE = 100;

type Event = useLiveHomeSubscription["response"]["homeTimeline"];
type Edge = NonNullable<Event["edge"]>;

/** The first page. Only this query selects `liveCursor`: with the pages further down it would move. */
const page = graphql`
  query useLiveHomeQuery($count: Int!) {
    viewer {
      homeTimeline {
        liveCursor
      }
      ...HomeFeed_viewer @arguments(count: $count)
    }
  }
`;

const subscription = graphql`
  subscription useLiveHomeSubscription($after: String) {
    homeTimeline(after: $after) {
      __typename
      cursor
      ... on PostAdded {
        edge {
          cursor
          node {
            id
            author {
              id
            }
            ...PostCard_post
          }
        }
      }
      ... on PostRemoved {
        postId
      }
      ... on AuthorRemoved {
        user {
          id
        }
      }
      ... on AuthorHidden {
        userId
      }
    }
  }
`;

interface Options {
  connection: string;
  /** The cursor of the first page. Later values are ignored, because the hook follows the events. */
  liveCursor: string;
  /** How many posts are loaded: as many are fetched again. */
  loaded: number;
  /** Called with each post that is added. */
  onPost: (edge: Edge) => void;
}

/** Keep the connection of the home timeline up to date. */
export function useLiveHome({ connection, liveCursor, loaded, onPost }: Options): void {
  const environment = useRelayEnvironment();
  const [frozen] = useState(liveCursor);
  const added = useEffectEvent(onPost);
  const count = useEffectEvent(() => Math.min(Math.max(loaded, PAGE), LARGEST_PAGE));

  useEffect(() => {
    let hasChanged = false;
    return live<Event>({
      liveCursor: frozen,
      async refetch() {
        const options = { fetchPolicy: "network-only" } as const;
        // `fetchQuery` writes into the store without suspending a component.
        const data = await fetchQuery<useLiveHomeQuery>(environment, page, { count: count() }, options).toPromise();
        if (!data?.viewer?.homeTimeline) throw new Error("The server did not return the home timeline.");
        return data.viewer.homeTimeline.liveCursor;
      },
      subscribe(after, sink) {
        const { dispose } = requestSubscription<useLiveHomeSubscription>(environment, {
          subscription,
          variables: { after },
          updater: (store, data) => {
            hasChanged = applyEvent(store, connection, store.getRootField("homeTimeline"));
            if (data?.homeTimeline.postId) forgetPost(environment, store, data.homeTimeline.postId);
          },
          onNext: (data) => data && sink.next(data.homeTimeline),
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      apply(event) {
        // The updater has changed the store already, unless it had the post or leaves it to a next page.
        if (event.edge && hasChanged) added(event.edge);
      },
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, connection, frozen]);
}
