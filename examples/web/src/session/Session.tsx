import { graphql, useLazyLoadQuery } from "react-relay";
import { LogInScreen } from "../account/LogInScreen";
import { useAttempt } from "../ui/ErrorBoundary";
import { Shell } from "../ui/Shell";
import type { SessionQuery } from "./__generated__/SessionQuery.graphql";

/** Show the log-in screen, or the app of the user who is logged in. */
export function Session() {
  const { viewer } = useLazyLoadQuery<SessionQuery>(
    graphql`
      query SessionQuery {
        viewer {
          user {
            ...Shell_viewer
          }
        }
      }
    `,
    {},
    { fetchKey: useAttempt() },
  );
  return viewer ? <Shell viewer={viewer.user} /> : <LogInScreen />;
}
