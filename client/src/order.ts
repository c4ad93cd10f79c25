/** An edge of a list, with the fields that determine its place. `id` identifies the entry in its cache. */
export interface ListedEdge {
  readonly id: string;
  readonly cursor: string | undefined;
}

/** The loaded part of a list, newest first. `endCursor` and `hasNextPage` are those of its last page. */
export interface LoadedList {
  readonly edges: readonly ListedEdge[];
  readonly endCursor?: string | null | undefined;
  readonly hasNextPage?: boolean | null | undefined;
}

/**
 * Return the index at which to insert an edge into a list, or undefined if the list already has its entry, or will get
 * it with a page that is not loaded yet.
 *
 * Of two entries, the one whose cursor is greater as a string is newer. Most new entries are the newest and get the
 * index 0. Others arrive late: a subscription starts at a cursor from before the page was read, so it repeats entries
 * of the page and, after a busy time, entries below the page. An edge without a cursor counts as older.
 */
export function indexFor({ id, cursor }: ListedEdge & { cursor: string }, list: LoadedList): number | undefined {
  if (list.edges.some((each) => each.id === id)) return undefined;
  const index = list.edges.findIndex((each) => each.cursor === undefined || each.cursor < cursor);
  if (index >= 0) return index;
  // The last edges may have been removed since they were loaded, so the end cursor takes precedence over the last edge.
  const end = list.endCursor ?? list.edges.at(-1)?.cursor;
  const isLoaded = list.hasNextPage === false || end === undefined || cursor >= end;
  return isLoaded ? list.edges.length : undefined;
}

/** Return a copy of a list with an item inserted at an index. */
export function withItemAt<Item>(items: readonly Item[], index: number, item: Item): Item[] {
  return [...items.slice(0, index), item, ...items.slice(index)];
}
