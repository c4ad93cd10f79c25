import { Suspense } from "react";
import { graphql, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { BellIcon } from "../ui/icons";
import { notificationsPath, useHash } from "../ui/router";
import { useLiveNotifications } from "./useLiveNotifications";
import type { NotificationsLinkQuery } from "./__generated__/NotificationsLinkQuery.graphql";

/** The link to the notifications. It also works without the number of unread notifications. */
export function NotificationsLink() {
  return (
    <ErrorBoundary name="The number" fallback={<Bell />}>
      <Suspense fallback={<Bell />}>
        <LiveBell />
      </Suspense>
    </ErrorBoundary>
  );
}

function LiveBell() {
  const { viewer } = useLazyLoadQuery<NotificationsLinkQuery>(
    graphql`
      query NotificationsLinkQuery {
        viewer {
          notifications {
            id
            unreadCount
            hasMoreUnread
            liveCursor
          }
        }
      }
    `,
    {},
    { fetchKey: useAttempt() },
  );
  const feed = viewer?.notifications;
  useLiveNotifications(feed?.id, feed?.liveCursor);
  return <Bell unread={feed?.unreadCount} hasMore={feed?.hasMoreUnread} />;
}

/** The server counts up to 100. */
function Bell({ unread = 0, hasMore = false }: { unread?: number | undefined; hasMore?: boolean | undefined }) {
  const isOpen = useHash() === notificationsPath;
  const count = hasMore ? `${String(unread)}+` : String(unread);
  return (
    <a
      className="icon bell"
      href={notificationsPath}
      aria-label={unread > 0 ? `Notifications, ${count} unread` : "Notifications"}
      aria-current={isOpen ? "page" : undefined}
    >
      <BellIcon />
      {unread > 0 && <span className="bell-count">{count}</span>}
    </a>
  );
}
