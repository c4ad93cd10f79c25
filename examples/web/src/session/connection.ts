import { useEffect, useState, useSyncExternalStore } from "react";
import { onSessionChange } from "./changes";
import { connect } from "./network";
import type { Connection } from "./network";

const SHORT = 1_500;

let connection = connect();

// Each session has its own connection and store, so that no data of one user is left for the next.
onSessionChange(() => {
  connection.close();
  connection = connect();
});

/** Return the connection of the current session. */
export function useConnection(): Connection {
  return useSyncExternalStore(onSessionChange, () => connection);
}

/** Return whether the live connection has been lost for more than a moment. */
export function useIsDisconnected(): boolean {
  const { status } = useConnection();
  const isLost = useSyncExternalStore(status.subscribe, status.isLost);
  const [isLong, setIsLong] = useState(false);

  useEffect(() => {
    if (!isLost) return undefined;
    const timer = setTimeout(() => setIsLong(true), SHORT);
    return () => {
      clearTimeout(timer);
      setIsLong(false);
    };
  }, [isLost]);

  return isLost && isLong;
}
