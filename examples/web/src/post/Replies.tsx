import { graphql, usePaginationFragment } from "react-relay";
import { usePostEvents } from "../live/usePostEvents";
import { EndlessList } from "../ui/EndlessList";
import { replyConnection } from "./connections";
import { NewPosts } from "./NewPosts";
import { PostCard } from "./PostCard";
import { useHeld } from "./useHeld";
import { useNewReplies } from "./useNewReplies";
import type { Replies_post$key } from "./__generated__/Replies_post.graphql";
import type { RepliesNextQuery } from "./__generated__/RepliesNextQuery.graphql";

interface Props {
  post: Replies_post$key;
  viewerId: string;
  /** The authors of the posts above, whose posts the thread hears of. */
  authors: readonly string[];
  liveCursor: string | null | undefined;
  refetch: () => Promise<string | null | undefined>;
}

/** The direct replies to a post. Those of users who take part in the thread are live, and others appear soon. */
export function Replies({ post, viewerId, authors, liveCursor, refetch }: Props) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<RepliesNextQuery, Replies_post$key>(
    graphql`
      fragment Replies_post on Post
      @refetchable(queryName: "RepliesNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, after: { type: "String" }) {
        id
        repliesCount
        replies(first: $count, after: $after) @connection(key: "Replies_replies") {
          edges {
            cursor
            node {
              id
              author {
                id
              }
              ...PostCard_post
            }
          }
        }
      }
    `,
    post,
  );
  const replies = (data.replies?.edges ?? []).map(({ node }) => node);
  const { visible, count, hold, showAll } = useHeld(replies);
  const users = new Set([...authors, ...replies.map(({ author }) => author.id)]);

  usePostEvents({
    connection: replyConnection(data.id),
    filter: { users: [...users].sort() },
    liveCursor,
    refetch,
    accepts: ({ replyToId }) => replyToId === data.id,
    onPost: added,
  });
  useNewReplies({ postId: data.id, count: data.repliesCount, refetch, onReply: added });

  function added({ id, author }: { id: string; author: { id: string } }) {
    if (author.id !== viewerId) hold(id); // the viewer's own appear at once
  }

  return (
    <section aria-label="Replies">
      <NewPosts count={count} onShow={showAll} words={["reply", "replies"]} />
      <EndlessList
        name="replies"
        hasNext={hasNext}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(20, { onComplete })}
        empty={<p>No replies yet.</p>}
      >
        {visible.map((reply) => (
          <PostCard key={reply.id} post={reply} isInThread />
        ))}
      </EndlessList>
    </section>
  );
}
