import { graphql, useFragment } from "react-relay";
import { postPath } from "../ui/router";
import { Time } from "../ui/Time";
import type { QuotedPost_post$key } from "./__generated__/QuotedPost_post.graphql";

/** A post inside another one that quotes it. It is null if it was deleted or is hidden. */
export function QuotedPost({ post }: { post: QuotedPost_post$key | null | undefined }) {
  const data = useFragment(
    graphql`
      fragment QuotedPost_post on Post {
        id
        text
        createdAt
        author {
          id
          login
          name
        }
      }
    `,
    post,
  );
  if (!data) return <p className="quoted unavailable">The quoted post is not available.</p>;
  const { id, text, createdAt, author } = data;
  return (
    <a className="quoted" href={postPath(id)}>
      <span className="quoted-author">
        <strong>
          <bdi>{author.name}</bdi>
        </strong>{" "}
        <span className="quiet">
          @{author.login} · <Time at={createdAt} />
        </span>
      </span>
      <span className="quoted-text" dir="auto">
        {text || "Pictures and videos"}
      </span>
    </a>
  );
}
