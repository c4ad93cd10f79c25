/** A function that is called with the `liveCursor` of a page that has arrived in a cache. */
export type Arrived = (liveCursor: string) => void;

/** The watchers of pages by the key of their object, for all caches. */
const watchers = new Map<string, Set<Arrived>>();

/** Call a function with the `liveCursor` of each first page of an object. Return a function that ends this. */
export function watch(key: string, arrived: Arrived): () => void {
  const ofObject = watchers.get(key) ?? new Set();
  watchers.set(key, ofObject.add(arrived));
  return () => {
    if (ofObject.delete(arrived) && ofObject.size === 0) watchers.delete(key);
  };
}

/** Call the watchers of an object's pages, when the page that is being written is in the cache completely. */
export function report(key: string, liveCursor: string): void {
  queueMicrotask(() => watchers.get(key)?.forEach((arrived) => arrived(liveCursor)));
}
