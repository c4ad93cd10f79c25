import { memo } from "react";
import { graphql, useFragment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { profilePath } from "../ui/router";
import { Time } from "../ui/Time";
import { DeleteButton } from "./DeleteButton";
import type { PostCard_post$key } from "./__generated__/PostCard_post.graphql";

export const PostCard = memo(function PostCard({ post }: { post: PostCard_post$key }) {
  const { id, text, createdAt, platform, author } = useFragment(
    graphql`
      fragment PostCard_post on Post {
        id
        text
        createdAt
        platform
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
            · <Time at={createdAt} />
          </span>
        </header>
        <p className="post-text" dir="auto">
          {text}
        </p>
        <footer className="quiet">
          {platform && <span>from {platform}</span>}
          {author.relationship?.state === "SELF" && <DeleteButton postId={id} authorId={author.id} />}
        </footer>
      </div>
    </article>
  );
});
