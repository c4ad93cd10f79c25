// The types of the data that the hooks return, for the default documents and for an application's own documents.

/** The fields of a list's owner that the hooks need. */
export interface ListOwner {
  readonly __typename?: string;
  readonly id?: string;
  readonly liveCursor?: string | null;
  /** The author of a thread's post. When the author is hidden, the post disappears. */
  readonly author?: { readonly id?: string };
}

interface Author {
  readonly id: string;
  readonly login: string;
  readonly name: string;
}

interface PostFields {
  readonly id: string;
  readonly createdAt: string;
  readonly text: string;
  readonly author: Author;
  readonly likesCount: number;
  readonly repliesCount: number;
  readonly repostsCount: number;
  readonly quotesCount: number;
  readonly viewerHasLiked: boolean | null;
  readonly viewerHasReposted: boolean | null;
  readonly quotedPost: { readonly id: string; readonly text: string; readonly author: Author } | null;
}

/** A post of the default documents. */
export interface Post extends PostFields {
  readonly __typename: "Post";
}

/** A repost of the default documents. */
export interface Repost {
  readonly __typename: "Repost";
  readonly id: string;
  readonly createdAt: string;
  readonly author: Author;
  readonly post: PostFields | null;
}

/** A notification of the default documents. Notifications about posts have the field `post`. */
export interface Notification {
  readonly __typename: string;
  readonly id: string;
  readonly at: string;
  readonly isRead: boolean;
  readonly actorsCount: number;
  readonly actors: readonly Author[];
  readonly post?: { readonly id: string; readonly text: string } | null;
}

interface Connection<Node> {
  readonly edges: readonly { readonly cursor: string; readonly node: Node }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}

interface Timeline {
  readonly id: string;
  readonly liveCursor: string | null;
  readonly entries: Connection<Post | Repost> | null;
}

interface NotificationFeed {
  readonly id: string;
  readonly unreadCount: number;
  readonly hasMoreUnread: boolean;
  readonly liveCursor: string | null;
  readonly entries: Connection<Notification> | null;
}

/** The data of the default query of `useHomeTimeline`. */
export interface HomeTimelineData {
  readonly viewer: { readonly id: string; readonly homeTimeline: Timeline | null } | null;
}

/** The data of the default query of `useTimeline`. */
export interface TimelineData {
  readonly node: ({ readonly __typename: "Timeline" } & Timeline) | null;
}

/** The data of the default query of `useThread`. */
export interface ThreadData {
  readonly post: (Post & { readonly liveCursor: string | null; readonly replies: Connection<Post> | null }) | null;
}

/** The data of the default query of `useNotifications`. */
export interface NotificationsData {
  readonly viewer: { readonly id: string; readonly notifications: NotificationFeed | null } | null;
}

/** The type of a field, which some types of a union may lack. */
type Field<Type, Name extends string> = Type extends unknown ? (Name extends keyof Type ? NonNullable<Type[Name]> : never) : never;
type Item<Type> = Type extends readonly (infer Each)[] ? Each : never;
type Node<Owner, Name extends string> = Field<Item<Field<Field<Owner, Name>, "edges">>, "node">;

/** The entries in the data of a query. */
export type HomeEntry<Data> = Node<Field<Field<Data, "viewer">, "homeTimeline">, "entries">;
export type TimelineEntryOf<Data> = Node<Field<Data, "node">, "entries">;
export type ReplyOf<Data> = Node<Field<Data, "post">, "replies">;
export type NotificationOf<Data> = Node<Field<Field<Data, "viewer">, "notifications">, "entries">;
