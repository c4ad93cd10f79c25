import { useLazyLoadQuery } from "react-relay";
import { useAttempt } from "../ui/ErrorBoundary";
import { NotificationList } from "./NotificationList";
import { PAGE, query } from "./useLiveNotifications";
import type { useLiveNotificationsQuery } from "./__generated__/useLiveNotificationsQuery.graphql";

/** What others did that involves the viewer. The link in the navigation keeps the list up to date. */
export function NotificationsScreen() {
  const { viewer } = useLazyLoadQuery<useLiveNotificationsQuery>(
    query,
    { count: PAGE },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!viewer) return null; // the session has just ended
  if (!viewer.notifications) throw new Error("The server did not return the notifications.");
  return (
    <>
      <title>Notifications · Fanline</title>
      <div className="heading">
        <h1>Notifications</h1>
      </div>
      <NotificationList feed={viewer.notifications} />
    </>
  );
}
