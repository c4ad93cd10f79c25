import { Suspense } from "react";
import { graphql, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { BellIcon } from "../ui/icons";
import { notificationsPath, useHash } from "../ui/router";
import { useLiveNotifications } from "./useLiveNotifications";
import type { NotificationsLinkQuery } from "./__generated__/NotificationsLinkQuery.graphql";

/** The link to the notifications. It works without the number of unread ones, too. */
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
  const { notifications } = useLazyLoadQuery<NotificationsLinkQuery>(
    graphql`
      query NotificationsLinkQuery {
        notifications {
          id
          unreadCount
          liveCursor
        }
      }
    `,
    {},
    { fetchKey: useAttempt() },
  );
  useLiveNotifications(notifications?.id, notifications?.liveCursor);
  return <Bell unread={notifications?.unreadCount} />;
}

/** The server counts to 100: that is 100 or more. */
function Bell({ unread = 0 }: { unread?: number }) {
  const isOpen = useHash() === notificationsPath;
  const count = unread < 100 ? String(unread) : "99+";
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
