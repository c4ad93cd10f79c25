import type { KeyGenerator, KeyingConfig } from "@urql/exchange-graphcache";

const byCursor: KeyGenerator = ({ ["cursor"]: cursor }) => (typeof cursor === "string" ? cursor : null);
const EMBEDDED = [
  ...["BookmarkConnection", "BookmarkEdge", "Credentials", "FollowConnection", "FollowEdge", "FollowResult", "HashtagEntity"],
  ...["ImageAttachment", "LikeConnection", "LikeEdge", "LikedPostConnection", "LikedPostEdge", "LinkEntity", "Location"],
  ...["MentionEntity", "NotificationConnection", "PageInfo", "PostConnection", "PostSearch", "RateLimit"],
  ...["RepostConnection", "TimelineConnection", "UserConnection", "UserEdge", "UserError", "UserErrorParam"],
  "VideoAttachment",
];

/**
 * The keys of the types without an `id`. An edge is identified by its cursor, so that the edge of an event is kept when
 * the next event arrives. Select `cursor` in all edges. There is only one viewer, even in documents that do not select
 * its id.
 */
export const keys: KeyingConfig = {
  ...Object.fromEntries(EMBEDDED.map((name) => [name, () => null])),
  PostEdge: byCursor,
  RepostEdge: byCursor,
  TimelineEdge: byCursor,
  NotificationEdge: byCursor,
  Viewer: () => "viewer",
};
