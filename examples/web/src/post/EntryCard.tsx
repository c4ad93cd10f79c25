import { memo } from "react";
import { graphql, useFragment } from "react-relay";
import { RepostIcon } from "../ui/icons";
import { profilePath } from "../ui/router";
import { Time } from "../ui/Time";
import { PostCard } from "./PostCard";
import { PostView } from "./PostView";
import type { EntryCard_entry$data, EntryCard_entry$key } from "./__generated__/EntryCard_entry.graphql";

/** An entry of a timeline. A repost shows its post, below the user who reposted it and the time of the repost. */
export const EntryCard = memo(function EntryCard({ entry }: { entry: EntryCard_entry$key }) {
  const data = useFragment(
    graphql`
      fragment EntryCard_entry on TimelineItem {
        createdAt
        author {
          id
          login
          name
        }
        ...PostCard_post @alias(as: "asPost")
        ... on Repost {
          post {
            id
            ...PostView_post
          }
        }
      }
    `,
    entry,
  ) as EntryCard_entry$data | null;
  if (!data) return null; // it was removed, and its list is about to change
  const { createdAt, author, asPost, post } = data;
  if (asPost) return <PostCard post={asPost} />;
  if (!post) return <p className="unavailable">The reposted post is not available.</p>;
  return (
    <PostView
      post={post}
      note={
        <p className="post-note post-repost">
          <RepostIcon />
          <span>
            <a href={profilePath(author.login)}>
              <bdi>{author.name}</bdi>
            </a>{" "}
            reposted · <Time at={createdAt} />
          </span>
        </p>
      }
    />
  );
});
