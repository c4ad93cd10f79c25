import { failure, live } from "@fanline/client";
import type { LiveEvent } from "@fanline/client";
import { addEdge, removePost } from "@fanline/client/relay";
import { useEffect } from "react";
import { ConnectionHandler, fetchQuery, graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { sessionChanged } from "../session/changes";
import type { useLiveNotificationsQuery } from "./__generated__/useLiveNotificationsQuery.graphql";
import type { useLiveNotificationsSubscription } from "./__generated__/useLiveNotificationsSubscription.graphql";

/** The first page. Pages further down do not select `liveCursor`. */
export const firstPage = graphql`
  query useLiveNotificationsQuery {
    notifications {
      id
      unreadCount
      liveCursor
      ...NotificationList_feed
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
 * `liveCursor` is that of the newest page in the store: the events after it come again whenever a new page has
 * overwritten the list.
 */
export function useLiveNotifications(feedId: string | undefined, liveCursor: string | undefined): void {
  const environment = useRelayEnvironment();

  useEffect(() => {
    if (feedId === undefined) return undefined;
    const list = ConnectionHandler.getConnectionID(feedId, "NotificationList_entries");
    return live<LiveEvent>({
      liveCursor,
      async refetch() {
        const options = { fetchPolicy: "network-only" } as const;
        const data = await fetchQuery<useLiveNotificationsQuery>(environment, firstPage, {}, options).toPromise();
        if (!data?.notifications) throw new Error("The server did not return the notifications.");
        return data.notifications.liveCursor;
      },
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
            if (!data) return;
            const { __typename, cursor } = data.notifications;
            // What has changed is not in the event, as if events were missing.
            sink.next({ __typename: __typename === "NotificationsChanged" ? "Gap" : __typename, cursor });
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
  }, [environment, feedId, liveCursor]);
}
