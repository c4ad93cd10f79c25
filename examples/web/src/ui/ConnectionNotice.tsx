import { useIsDisconnected } from "../session/connection";

/** Say that nothing new arrives. The element is always there, since readers of screens watch for changes in it. */
export function ConnectionNotice() {
  const isDisconnected = useIsDisconnected();
  return (
    <div className="connection" role="status">
      {isDisconnected && (
        <p>
          <span className="connection-dot" aria-hidden="true" />
          {navigator.onLine ? "No connection to the server. Trying again…" : "You are offline."}
        </p>
      )}
    </div>
  );
}
