import type { ReactNode } from "react";
import { graphql, useFragment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { postPath, profilePath } from "../ui/router";
import { Time } from "../ui/Time";
import { Attachments } from "./Attachments";
import { DeleteButton } from "./DeleteButton";
import { PostActions } from "./PostActions";
import { PostText } from "./PostText";
import { QuotedPost } from "./QuotedPost";
import type { PostView_post$key } from "./__generated__/PostView_post.graphql";

interface Props {
  post: PostView_post$key;
  /** Whether the post is shown next to the post that it replies to. */
  isInThread?: boolean;
  /** Why the post is in a list, such as who reposted it. */
  note?: ReactNode;
}

/** A post with its text and everything that belongs to it. */
export function PostView({ post, isInThread = false, note }: Props) {
  const { id, createdAt, platform, author, replyToId, replyTo, quotedPostId, quotedPost, ...data } = useFragment(
    graphql`
      fragment PostView_post on Post {
        id
        createdAt
        platform
        replyToId
        replyTo {
          id
          author {
            id
            login
          }
        }
        quotedPostId
        quotedPost {
          ...QuotedPost_post
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
        ...PostText_post
        ...Attachments_post
        ...PostActions_post
      }
    `,
    post,
  );
  return (
    <article className="post" data-post={id} aria-label={`Post by ${author.name}`}>
      <Avatar user={author} />
      <div className="post-body">
        {note}
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
        <PostText post={data} />
        <Attachments post={data} />
        {quotedPostId && <QuotedPost post={quotedPost} />}
        <footer className="quiet">
          <PostActions post={data} />
          <span className="post-end">
            {platform && <span className="post-platform">from {platform}</span>}
            {author.relationship?.state === "YOU" && <DeleteButton postId={id} />}
          </span>
        </footer>
      </div>
    </article>
  );
}
