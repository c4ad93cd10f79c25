import { graphql, useFragment } from "react-relay";
import { QuoteIcon, ReplyIcon } from "../ui/icons";
import { postPath } from "../ui/router";
import { Count } from "./Count";
import { LikeButton } from "./LikeButton";
import { useQuote } from "./Quoting";
import { RepostButton } from "./RepostButton";
import type { PostActions_post$key } from "./__generated__/PostActions_post.graphql";

/** What readers can do with a post. */
export function PostActions({ post }: { post: PostActions_post$key }) {
  const { id, repliesCount, quotesCount, ...data } = useFragment(
    graphql`
      fragment PostActions_post on Post {
        id
        repliesCount
        quotesCount
        ...LikeButton_post
        ...RepostButton_post
      }
    `,
    post,
  );
  const quote = useQuote();
  return (
    <>
      <a className="action" href={postPath(id)}>
        <ReplyIcon />
        <Count name="Reply" count={repliesCount} />
      </a>
      <RepostButton post={data} />
      <button className="action" aria-haspopup="dialog" onClick={() => quote(id)}>
        <QuoteIcon />
        <Count name="Quote" count={quotesCount} />
      </button>
      <LikeButton post={data} />
    </>
  );
}
