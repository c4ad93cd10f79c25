import { memo } from "react";
import { graphql, useFragment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { ReplyIcon } from "../ui/icons";
import { postPath, profilePath } from "../ui/router";
import { Time } from "../ui/Time";
import { Count } from "./Count";
import { DeleteButton } from "./DeleteButton";
import type { PostCard_post$key } from "./__generated__/PostCard_post.graphql";

interface Props {
  post: PostCard_post$key;
  /** Whether it is next to the post that it replies to. */
  isInThread?: boolean;
}

export const PostCard = memo(function PostCard({ post, isInThread = false }: Props) {
  const { id, text, createdAt, platform, author, replyToId, replyTo, repliesCount } = useFragment(
    graphql`
      fragment PostCard_post on Post {
        id
        text
        createdAt
        platform
        repliesCount
        replyToId
        replyTo {
          id
          author {
            id
            login
          }
        }
        author {
          id
          login
          name
          relationship {
            id
            state
          }
          ...Avatar_user
        }
      }
    `,
    post,
  );
  return (
    <article className="post" data-post={id} aria-label={`Post by ${author.name}`}>
      <Avatar user={author} />
      <div className="post-body">
        <header>
          <a href={profilePath(author.login)}>
            <strong>
              <bdi>{author.name}</bdi>
            </strong>{" "}
            <span className="quiet">@{author.login}</span>
          </a>
          <span className="quiet">
            ·{" "}
            <a href={postPath(id)}>
              <Time at={createdAt} />
            </a>
          </span>
        </header>
        {replyToId && !isInThread && (
          <p className="post-note">
            {replyTo ? (
              <>
                Reply to <a href={postPath(replyToId)}>a post by @{replyTo.author.login}</a>
              </>
            ) : (
              "Reply to a post that is not available"
            )}
          </p>
        )}
        <p className="post-text" dir="auto">
          {text}
        </p>
        <footer className="quiet">
          <a className="action" href={postPath(id)}>
            <ReplyIcon />
            <Count name="Reply" count={repliesCount} />
          </a>
          <span className="post-end">
            {platform && <span className="post-platform">from {platform}</span>}
            {author.relationship?.state === "SELF" && <DeleteButton postId={id} />}
          </span>
        </footer>
      </div>
    </article>
  );
});
