import { collapseReposts } from "@fanline/client";
import type { TimelineEntry } from "@fanline/client";

interface Entry extends TimelineEntry {
  readonly __typename: string;
}

/** The types of entries that this version can show. A later version of the API may add others. */
const KNOWN = new Set(["Post", "Repost"]);

/** Return the entries of a timeline that are shown: each post once, where it comes first. */
export function shownEntries<E extends Entry>(entries: readonly E[]): E[] {
  return collapseReposts(entries.filter(({ __typename }) => KNOWN.has(__typename)));
}
