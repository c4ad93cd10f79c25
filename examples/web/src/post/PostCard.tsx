import { memo } from "react";
import { graphql, useFragment } from "react-relay";
import { RepostIcon } from "../ui/icons";
import { profilePath } from "../ui/router";
import { PostView } from "./PostView";
import type { PostCard_post$data, PostCard_post$key } from "./__generated__/PostCard_post.graphql";

interface Props {
  post: PostCard_post$key;
  /** Whether it is next to the post that it replies to. */
  isInThread?: boolean;
}

/** An entry of a list of posts. A repost without a text shows its original. */
export const PostCard = memo(function PostCard({ post, isInThread = false }: Props) {
  const card = useFragment(
    graphql`
      fragment PostCard_post on Post {
        text
        attachments {
          __typename
        }
        author {
          id
          login
          name
        }
        repostOfId
        repostOf {
          id
          ...PostView_post
        }
        ...PostView_post
      }
    `,
    post,
  ) as PostCard_post$data | null;
  if (!card) return null; // it was deleted, and its list is about to change
  const { text, attachments, repostOfId, repostOf, author, ...data } = card;
  const isPlainRepost = repostOfId != null && text === "" && attachments.length === 0;
  if (!isPlainRepost) return <PostView post={data} isInThread={isInThread} />;
  if (!repostOf) return <p className="unavailable">The reposted post is not available.</p>;
  return (
    <PostView
      post={repostOf}
      isInThread={isInThread}
      note={
        <p className="post-note post-repost">
          <RepostIcon />
          <span>
            <a href={profilePath(author.login)}>
              <bdi>{author.name}</bdi>
            </a>{" "}
            reposted
          </span>
        </p>
      }
    />
  );
});
