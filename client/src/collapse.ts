/** The fields of a timeline entry that `collapseReposts` reads. Only reposts have the field `post`. */
export interface TimelineEntry {
  readonly id: string;
  /** The reposted post, or null if it is deleted or hidden. */
  readonly post?: { readonly id: string } | null | undefined;
}

/**
 * Return the entries of a timeline that show a post for the first time, in the same order.
 *
 * A timeline may show the same post several times: the post itself and its reposts. The first occurrence (top-most in
 * the current list) stays, and later (older) ones are dropped, so that no visible entry disappears when older pages
 * load. Pass all entries that are on the screen, not each page on its own. Reposts without their post stay.
 *
 * The result is for display only: the next page begins at the `endCursor` of the last page, dropped or not.
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
