/** The arguments of a page's field, or none. */
export type Arguments = Readonly<Record<string, unknown>> | null | undefined;

/** For each type of owner, the field that contains its list, and the type of the list's edges. */
export const LISTS = {
  Timeline: { field: "entries", edgeType: "TimelineEdge" },
  Post: { field: "replies", edgeType: "PostEdge" },
  NotificationFeed: { field: "entries", edgeType: "NotificationEdge" },
} as const;

/** The owners of lists of posts and reposts: a timeline, and the post of a thread. */
export const OWNERS = ["Timeline", "Post"] as const;

/** Return whether arguments select a page. A `liveCursor` without such arguments belongs to no list. */
export function isPage(args: Arguments): boolean {
  return args?.["first"] != null || args?.["last"] != null;
}

/** Return whether arguments select a first page, which replaces a list. */
export function isFirstPage(args: Arguments): boolean {
  return args?.["after"] == null && args?.["before"] == null;
}

/** Return a key that distinguishes lists of the same field: the arguments that all pages of a list share, as JSON. */
export function listKey(args: Arguments): string {
  return args?.["kinds"] == null ? "" : JSON.stringify({ kinds: args["kinds"] });
}

/** Return whether a list with these arguments has notifications of a type, such as `LikeNotification` for `LIKE`. */
export function takes(args: Arguments, typename: string | undefined): boolean {
  const kinds = args?.["kinds"];
  return !Array.isArray(kinds) || (typename !== undefined && kinds.includes(kindOf(typename)));
}

/** Return the `NotificationKind` of the notifications of a type. */
export function kindOf(typename: string): string {
  const name = typename.replace(/Notification$/, "");
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}
