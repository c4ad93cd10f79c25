import { useIsDisconnected } from "../session/connection";

/** Show that nothing new arrives. The element is always there, because screen readers watch it for changes. */
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
