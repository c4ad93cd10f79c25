const FIRST = 250;
const LONGEST = 30_000;

/** Wait before the next attempt: twice as long each time, up to 30 seconds, with a random part. */
export function pause(attempts: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, backoff(attempts)));
}

/**
 * Return a random number of milliseconds to wait before the next attempt, so that not all clients reconnect together.
 */
export function backoff(attempts: number): number {
  return Math.min(LONGEST, FIRST * 2 ** attempts) * (0.5 + Math.random() / 2);
}
