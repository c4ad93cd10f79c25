import { graphql, useLazyLoadQuery, useMutation } from "react-relay";
import { useProblem } from "../post/useProblem";
import { useAttempt } from "../ui/ErrorBoundary";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toasts";
import { ChangePassword } from "./ChangePassword";
import { DeleteAccount } from "./DeleteAccount";
import { deviceOf } from "./device";
import type { SessionsScreenEndMutation } from "./__generated__/SessionsScreenEndMutation.graphql";
import type { SessionsScreenQuery } from "./__generated__/SessionsScreenQuery.graphql";

/** The devices on which the viewer is logged in, the password, and the deletion of the account. */
export function SessionsScreen() {
  const { viewer } = useLazyLoadQuery<SessionsScreenQuery>(
    graphql`
      query SessionsScreenQuery {
        viewer {
          user {
            login
          }
          sessions {
            id
            createdAt
            lastUsedAt
            userAgent
            current
          }
        }
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  const [end, isEnding] = useMutation<SessionsScreenEndMutation>(graphql`
    mutation SessionsScreenEndMutation($input: EndSessionInput!) {
      endSession(input: $input) {
        endedSessionId
        userErrors {
          message
        }
      }
    }
  `);
  const toast = useToast();
  const { onErrors, onError } = useProblem();
  if (!viewer) return null; // the session has just ended
  const { user, sessions } = viewer;
  if (!sessions) throw new Error("The server did not return the sessions.");

  function endOne(sessionId: string) {
    end({
      variables: { input: { sessionId } },
      updater(store, data) {
        const ended = data?.endSession?.endedSessionId;
        const owner = store.getRoot().getLinkedRecord("viewer");
        const kept = owner.getLinkedRecords("sessions").filter((each) => each.getDataID() !== ended);
        owner.setLinkedRecords(kept, "sessions");
      },
      onCompleted({ endSession }) {
        onErrors(endSession?.userErrors);
        if (!endSession?.endedSessionId) return;
        toast("The session has ended.");
        document.getElementById("main")?.focus({ preventScroll: true }); // the button is gone
      },
      onError,
    });
  }

  return (
    <>
      <title>Settings · Fanline</title>
      <div className="heading">
        <h1>Where you are logged in</h1>
      </div>
      <ul className="list" aria-label="Sessions">
        {sessions.map(({ id, createdAt, lastUsedAt, userAgent, current }) => (
          <li key={id} className="user-row">
            <div className="user-row-body">
              <strong>{deviceOf(userAgent)}</strong> {current && <span className="badge">This device</span>}
              <p>
                Logged in <Time at={createdAt} />, last used <Time at={lastUsedAt} />
              </p>
            </div>
            {!current && (
              <button
                className="button button-quiet"
                aria-label={`End the session of ${deviceOf(userAgent)}`}
                disabled={isEnding}
                onClick={() => endOne(id)}
              >
                End
              </button>
            )}
          </li>
        ))}
      </ul>
      <ChangePassword login={user.login} />
      <DeleteAccount login={user.login} />
    </>
  );
}
