import { failure, live } from "@fanline/client";
import { applyEvent, liveCursorOf, watchPages } from "@fanline/client/relay";
import { useEffect, useEffectEvent } from "react";
import { graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { forgetPost } from "../post/connections";
import { sessionChanged } from "../session/changes";
import { fetchPages } from "./fetchPages";
import type { useLiveHomeQuery } from "./__generated__/useLiveHomeQuery.graphql";
import type { useLiveHomeSubscription } from "./__generated__/useLiveHomeSubscription.graphql";

export const PAGE = 20;
const MOST = 100;

type Event = useLiveHomeSubscription["response"]["homeTimeline"];
type Edge = NonNullable<Event["edge"]>;

/** All pages, when the list is fetched again. */
const query = graphql`
  query useLiveHomeQuery($count: Int!, $after: String) @raw_response_type {
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
  /** Called with each post that is added. */
  onPost: (edge: Edge) => void;
}

/** Keep the connection of the home timeline up to date. */
export function useLiveHome({ connection, onPost }: Options): void {
  const environment = useRelayEnvironment();
  const added = useEffectEvent(onPost);

  useEffect(() => {
    let hasChanged = false;
    return live<Event>({
      liveCursor: liveCursorOf(environment, connection),
      refetch: () =>
        fetchPages<useLiveHomeQuery>({
          environment,
          query,
          connection,
          page: PAGE,
          most: MOST,
          pageInfo: ({ viewer }) => viewer?.homeTimeline?.posts?.pageInfo,
        }),
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
      watchPages: (arrived) => watchPages(connection, arrived),
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, connection]);
}
