import { graphql, useFragment } from "react-relay";
import { ReplyIcon } from "../ui/icons";
import { postPath } from "../ui/router";
import { Count } from "./Count";
import { LikeButton } from "./LikeButton";
import type { PostActions_post$key } from "./__generated__/PostActions_post.graphql";

/** What readers do with a post. */
export function PostActions({ post }: { post: PostActions_post$key }) {
  const { id, repliesCount, ...data } = useFragment(
    graphql`
      fragment PostActions_post on Post {
        id
        repliesCount
        ...LikeButton_post
      }
    `,
    post,
  );
  return (
    <>
      <a className="action" href={postPath(id)}>
        <ReplyIcon />
        <Count name="Reply" count={repliesCount} />
      </a>
      <LikeButton post={data} />
    </>
  );
}
