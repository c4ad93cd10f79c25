import { graphql, usePaginationFragment } from "react-relay";
import { PAGE } from "../live/fetchPages";
import { useLiveThread } from "../live/useLiveThread";
import { EndlessList } from "../ui/EndlessList";
import { replyConnection } from "./connections";
import { NewPosts } from "./NewPosts";
import { PostCard } from "./PostCard";
import { useHeld } from "./useHeld";
import type { Replies_post$key } from "./__generated__/Replies_post.graphql";
import type { RepliesNextQuery } from "./__generated__/RepliesNextQuery.graphql";

interface Props {
  post: Replies_post$key;
  viewerId: string;
  /** The authors of the post and the posts above: when one of them is hidden, the screen is fetched again. */
  authors: readonly (string | undefined)[];
  refetch: () => Promise<string | undefined>;
}

/** The direct replies to a post. */
export function Replies({ post, viewerId, authors, refetch }: Props) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<RepliesNextQuery, Replies_post$key>(
    graphql`
      fragment Replies_post on Post
      @refetchable(queryName: "RepliesNextQuery")
      @argumentDefinitions(count: { type: "Int!" }, after: { type: "String" }) {
        id
        liveCursor(first: $count, after: $after) # for liveCursorOf and watchPages
        replies(first: $count, after: $after) @connection(key: "Replies_replies") {
          edges {
            node {
              id
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

  useLiveThread({
    id: data.id,
    connection: replyConnection(data.id),
    viewerId,
    hold,
    refetch,
    concernsMore: (event) => event.__typename === "AuthorHidden" && authors.includes(event.userId),
  });

  return (
    <section aria-label="Replies">
      <NewPosts count={count} onShow={showAll} words={["reply", "replies"]} />
      <EndlessList
        name="replies"
        hasNext={hasNext}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(PAGE, { onComplete })}
        empty={<p>No replies yet.</p>}
      >
        {visible.map((reply) => (
          <PostCard key={reply.id} post={reply} isInThread />
        ))}
      </EndlessList>
    </section>
  );
}
