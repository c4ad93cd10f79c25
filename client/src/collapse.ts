/** What `collapseReposts` reads of an entry of a timeline. Only reposts have the field `post`. */
export interface TimelineEntry {
  readonly id: string;
  /** The reposted post, or null if it is deleted or hidden. */
  readonly post?: { readonly id: string } | null | undefined;
}

/**
 * Return the entries of a timeline that show a post for the first time, in the same order.
 *
 * In a timeline the same post may occur several times, as the post and as reposts of it. The occurrence that is shown first
 * (top-most in the current list) stays, and later (older) ones are dropped, so that nothing that is already visible
 * disappears when older pages load. Pass all entries that are on the screen, not each page on its own. Reposts without
 * their post stay.
 *
 * The result is for display only: the next page begins at the `endCursor` of the last page, whatever is dropped.
 */
export function collapseReposts<Entry extends TimelineEntry>(entries: readonly Entry[]): Entry[] {
  const seen = new Set<string>();
  return entries.filter(({ id, post }) => {
    const shown = post?.id ?? id;
    if (seen.has(shown)) return false;
    seen.add(shown);
    return true;
  });
}
