/** Tells this tab and all others when the user has logged in or out. */
const channel = new BroadcastChannel("fanline-session");
const listeners = new Set<() => void>();
let isExpired = false;

channel.addEventListener("message", () => {
  notify(false);
});

function notify(hasExpired: boolean): void {
  isExpired = hasExpired;
  for (const listener of listeners) listener();
}

/** Announce in this tab that the server has ended the session. */
export function sessionChanged(): void {
  notify(true);
}

/** Announce in all tabs that the user has logged in or out. */
export function sessionChangedEverywhere(): void {
  channel.postMessage("changed");
  notify(false);
}

/** Call a function at each change. Return a function that stops the calls. */
export function onSessionChange(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Return whether the last session has ended without a log-out. */
export function hasExpired(): boolean {
  return isExpired;
}
