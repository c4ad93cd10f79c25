import { useLazyLoadQuery } from "react-relay";
import { useAttempt } from "../ui/ErrorBoundary";
import { NotificationList } from "./NotificationList";
import { firstPage, PAGE } from "./useLiveNotifications";
import type { useLiveNotificationsQuery } from "./__generated__/useLiveNotificationsQuery.graphql";

/** What others did that concerns the viewer. The link in the navigation keeps the list up to date. */
export function NotificationsScreen() {
  const { notifications } = useLazyLoadQuery<useLiveNotificationsQuery>(
    firstPage,
    { count: PAGE },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!notifications) return null; // the session has just ended
  return (
    <>
      <title>Notifications · Fanline</title>
      <div className="heading">
        <h1>Notifications</h1>
      </div>
      <NotificationList feed={notifications} />
    </>
  );
}
