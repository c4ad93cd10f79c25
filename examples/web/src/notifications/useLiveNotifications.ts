import { failure, live } from "@fanline/client";
import type { LiveEvent } from "@fanline/client";
import { addEdge, removePost, watchPages } from "@fanline/client/relay";
import { useEffect, useState } from "react";
import { ConnectionHandler, graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import type { Environment } from "relay-runtime";
import { fetchPage } from "../live/fetchPage";
import { sessionChanged } from "../session/changes";
import type { useLiveNotificationsNextQuery } from "./__generated__/useLiveNotificationsNextQuery.graphql";
import type { useLiveNotificationsQuery } from "./__generated__/useLiveNotificationsQuery.graphql";
import type { useLiveNotificationsSubscription } from "./__generated__/useLiveNotificationsSubscription.graphql";

export const PAGE = 30;
const LARGEST_PAGE = 50;
const MOST = 200;

/** The first page. Pages further down do not select `liveCursor`. Its handler tells `watchPages`. */
export const firstPage = graphql`
  query useLiveNotificationsQuery($count: Int!) @raw_response_type {
    notifications {
      id
      unreadCount
      liveCursor @__clientField(handle: "page")
      ...NotificationList_feed @arguments(count: $count)
    }
  }
`;

const nextPage = graphql`
  query useLiveNotificationsNextQuery($count: Int!, $after: String!) @raw_response_type {
    notifications {
      id
      ...NotificationList_feed @arguments(count: $count, after: $after)
    }
  }
`;

const subscription = graphql`
  subscription useLiveNotificationsSubscription($after: String) {
    notifications(after: $after) {
      __typename
      cursor
      ... on NotificationAdded {
        edge {
          cursor
          node {
            id
            ...NotificationRow_notification
          }
        }
        feed {
          id
          unreadCount
        }
      }
      ... on NotificationsChanged {
        feed {
          id
          unreadCount
        }
      }
    }
  }
`;

/**
 * Keep the number of unread notifications and the list of them in the store up to date.
 *
 * The subscription begins at `liveCursor`, whose later values are ignored, and again at each page that arrives: the screen
 * fetches the page, too, and overwrites what has arrived since the server read it.
 */
export function useLiveNotifications(feedId: string | undefined, liveCursor: string | undefined): void {
  const environment = useRelayEnvironment();
  const [frozen] = useState(liveCursor);

  useEffect(() => {
    if (feedId === undefined) return undefined;
    const list = ConnectionHandler.getConnectionID(feedId, "NotificationList_entries");
    return live<LiveEvent>({
      liveCursor: frozen,
      refetch: () => fetchPages(environment, list),
      subscribe(after, sink) {
        const { dispose } = requestSubscription<useLiveNotificationsSubscription>(environment, {
          subscription,
          variables: { after },
          updater(store, data) {
            const id = data?.notifications.edge?.node.id;
            if (id === undefined) return;
            removePost(store, list, id); // one that the list has moves to the top
            addEdge(store, list, store.getRootField("notifications").getLinkedRecord("edge"));
          },
          onNext(data) {
            if (data) sink.next(data.notifications);
          },
          onError: (problem) => sink.error(problem),
          onCompleted: () => sink.complete(),
        });
        return dispose;
      },
      watchPages: (arrived) => watchPages(feedId, arrived),
      onEnd(problem) {
        if (failure(problem).code === "UNAUTHENTICATED") sessionChanged();
      },
    });
  }, [environment, feedId, frozen]);
}

/** Fetch as many notifications as the list has, write them into the store at once, and return the cursor. */
async function fetchPages(environment: Environment, list: string): Promise<string> {
  const { data, commit } = await fetchPage<useLiveNotificationsQuery>(environment, firstPage, { count: PAGE });
  if (!data.notifications) throw new Error("The server did not return the notifications.");
  const commits = [commit];
  let fetched = PAGE;
  let last = data.notifications.entries?.pageInfo;
  while (last?.hasNextPage && last.endCursor) {
    const missing = Math.min(lengthOf(environment, list), MOST) - fetched; // the user can scroll on meanwhile
    if (missing <= 0) break;
    const variables = { count: Math.min(missing, LARGEST_PAGE), after: last.endCursor };
    const page = await fetchPage<useLiveNotificationsNextQuery>(environment, nextPage, variables);
    commits.push(page.commit);
    fetched += variables.count;
    last = page.data.notifications?.entries?.pageInfo;
  }
  for (const each of commits) each();
  return data.notifications.liveCursor;
}

function lengthOf(environment: Environment, list: string): number {
  const { edges } = (environment.getStore().getSource().get(list) ?? {}) as { edges?: { __refs: unknown[] } };
  return edges?.__refs.length ?? 0;
}
