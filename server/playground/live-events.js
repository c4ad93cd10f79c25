// Collects the events of a subscription. GraphiQL shows only the last result of an operation.

const MOST = 100;

/** Return the results of a subscription as a growing list: newest first, at most MOST, errors included. */
export function collect(source) {
  const results = source[Symbol.asyncIterator]();
  let events = [];
  let received = 0;
  let failed = false;

  const add = (result) => {
    received += 1;
    // Consecutive checkpoints only advance the cursor: the last one replaces those before it.
    if (isCheckpoint(result) && isCheckpoint(events[0])) events = events.slice(1);
    events = [result, ...events].slice(0, MOST);
    return { done: false, value: { received, newestFirst: events } };
  };

  return {
    [Symbol.asyncIterator]() {
      return this;
    },
    async next() {
      if (failed) return { done: true, value: undefined };
      try {
        const { done, value } = await results.next();
        return done ? { done, value: undefined } : add(value);
      } catch (error) {
        failed = true; // shown above the events, instead of replacing them
        return add({ errors: Array.isArray(error) ? error : [{ message: error?.message ?? String(error) }] });
      }
    },
    async return() {
      await results.return?.();
      return { done: true, value: undefined };
    },
  };
}

function isCheckpoint(result) {
  return Object.values(result?.data ?? {}).some((event) => event?.__typename === "Checkpoint");
}
