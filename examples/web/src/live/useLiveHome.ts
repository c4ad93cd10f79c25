import { failure, live } from "@fanline/client";
import { applyEvent, liveCursorOf, watchPages } from "@fanline/client/relay";
import { useEffect, useEffectEvent } from "react";
import { graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { forget } from "../post/connections";
import { sessionChanged } from "../session/changes";
import { fetchPages } from "./fetchPages";
import type { useLiveHomeQuery } from "./__generated__/useLiveHomeQuery.graphql";
import type { useLiveHomeSubscription } from "./__generated__/useLiveHomeSubscription.graphql";

export const PAGE = 20;
const MOST = 100;

type Event = useLiveHomeSubscription["response"]["homeTimeline"];
type Edge = NonNullable<Event["timelineEdge"]>;

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
        timelineEdge {
          cursor
          node {
            __typename
            id
            author {
              id
            }
            ...EntryCard_entry
          }
        }
      }
      ... on RepostAdded {
        timelineEdge {
          cursor
          node {
            __typename
            id
            author {
              id
            }
            ...EntryCard_entry
          }
        }
      }
      ... on PostRemoved {
        postId
      }
      ... on RepostRemoved {
        repostId
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
  /** Called with each post and repost that is added. */
  onEntry: (edge: Edge) => void;
}

/** Keep the connection of the home timeline up to date. */
export function useLiveHome({ connection, onEntry }: Options): void {
  const environment = useRelayEnvironment();
  const added = useEffectEvent(onEntry);

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
          pageInfo: ({ viewer }) => viewer?.homeTimeline?.entries?.pageInfo,
        }),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<useLiveHomeSubscription>(environment, {
          subscription,
          variables: { after },
          updater: (store, data) => {
            hasChanged = applyEvent(store, connection, store.getRootField("homeTimeline"));
            const removed = data?.homeTimeline.postId ?? data?.homeTimeline.repostId;
            if (removed) forget(environment, store, removed);
          },
          onNext: (data) => data && sink.next(data.homeTimeline),
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      apply(event) {
        // The updater has changed the store already, unless it had the entry or leaves it to a next page.
        if (event.timelineEdge && hasChanged) added(event.timelineEdge);
      },
      watchPages: (arrived) => watchPages(connection, arrived),
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, connection]);
}
