import { failure, live } from "@fanline/client";
import { applyEvent } from "@fanline/client/relay";
import { useEffect, useEffectEvent, useState } from "react";
import { fetchQuery, graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { forgetPost } from "../post/connections";
import { sessionChanged } from "../session/changes";
import type { Environment } from "relay-runtime";
import type { useLiveHomeNextQuery } from "./__generated__/useLiveHomeNextQuery.graphql";
import type { useLiveHomeQuery } from "./__generated__/useLiveHomeQuery.graphql";
import type { useLiveHomeSubscription } from "./__generated__/useLiveHomeSubscription.graphql";

export const PAGE = 20;
const LARGEST_PAGE = 50;
const MOST = 100;

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

const next = graphql`
  query useLiveHomeNextQuery($count: Int!, $after: String!) {
    viewer {
      ...HomeFeed_viewer @arguments(count: $count, after: $after)
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
        userId
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
  /** Called before the list is fetched again, and when all of its pages are there. */
  onRefetch: (isFetching: boolean) => void;
  /** Called with each post that is added. */
  onPost: (edge: Edge) => void;
}

/** Keep the connection of the home timeline up to date. */
export function useLiveHome({ connection, liveCursor, loaded, onRefetch, onPost }: Options): void {
  const environment = useRelayEnvironment();
  const [frozen] = useState(liveCursor);
  const added = useEffectEvent(onPost);
  const refetching = useEffectEvent(onRefetch);
  const count = useEffectEvent(() => Math.min(Math.max(loaded, PAGE), MOST));

  useEffect(() => {
    let hasChanged = false;
    return live<Event>({
      liveCursor: frozen,
      async refetch() {
        refetching(true);
        try {
          return await fetchPages(environment, connection, count());
        } finally {
          refetching(false);
        }
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

/** Fetch the newest posts in pages as large as the server allows, and return the cursor of the first page. */
async function fetchPages(environment: Environment, connection: string, count: number): Promise<string> {
  const options = { fetchPolicy: "network-only" } as const;
  const first = { count: Math.min(count, LARGEST_PAGE) };
  // `fetchQuery` writes into the store without suspending a component.
  const data = await fetchQuery<useLiveHomeQuery>(environment, page, first, options).toPromise();
  if (!data?.viewer?.homeTimeline) throw new Error("The server did not return the home timeline.");
  for (let rest = count - LARGEST_PAGE; rest > 0; rest -= LARGEST_PAGE) {
    const after = nextCursor(environment, connection);
    if (after === undefined) break;
    const variables = { after, count: Math.min(rest, LARGEST_PAGE) };
    await fetchQuery<useLiveHomeNextQuery>(environment, next, variables, options).toPromise();
  }
  return data.viewer.homeTimeline.liveCursor;
}

/** Return where the next page of a list begins, if there is one. */
function nextCursor(environment: Environment, connection: string): string | undefined {
  const source = environment.getStore().getSource();
  const { __ref } = source.get(connection)?.["pageInfo"] as { __ref: string };
  const { hasNextPage, endCursor } = source.get(__ref) as { hasNextPage?: boolean; endCursor?: string | null };
  return hasNextPage ? (endCursor ?? undefined) : undefined;
}
