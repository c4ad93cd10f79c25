/** A function that is called with the `liveCursor` of a first page that has arrived in a cache. */
export type Arrived = (liveCursor: string) => void;

/**
 * The owner of a list: a timeline, the post of a thread, or the notifications with the `kinds` of the list, if it has
 * any.
 */
export interface Owner {
  __typename: string;
  id: string;
  kinds?: readonly string[] | null | undefined;
}

/** The watchers of pages by the key of their list, for all caches. */
const watchers = new Map<string, Set<Arrived>>();

/** Call a function with the `liveCursor` of each first page of a list. Return a function that stops watching. */
export function watch(key: string, arrived: Arrived): () => void {
  const ofList = watchers.get(key) ?? new Set();
  watchers.set(key, ofList.add(arrived));
  return () => {
    if (ofList.delete(arrived) && ofList.size === 0) watchers.delete(key);
  };
}

/** Call the watchers of a list's pages once the page that is being written is completely in the cache. */
export function report(key: string, liveCursor: string): void {
  queueMicrotask(() => watchers.get(key)?.forEach((arrived) => arrived(liveCursor)));
}
