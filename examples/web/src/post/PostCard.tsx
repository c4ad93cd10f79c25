import { memo } from "react";
import { graphql, useFragment } from "react-relay";
import { PostView } from "./PostView";
import type { PostCard_post$data, PostCard_post$key } from "./__generated__/PostCard_post.graphql";

interface Props {
  post: PostCard_post$key;
  /** Whether the post is shown next to the post that it replies to. */
  isInThread?: boolean;
}

/** An entry of a list of posts. */
export const PostCard = memo(function PostCard({ post, isInThread = false }: Props) {
  const data = useFragment(
    graphql`
      fragment PostCard_post on Post {
        ...PostView_post
      }
    `,
    post,
  ) as PostCard_post$data | null;
  return data && <PostView post={data} isInThread={isInThread} />; // without data, its list is about to change
});
