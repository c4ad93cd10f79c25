import type { ReactNode } from "react";
import { graphql, useFragment } from "react-relay";
import { profilePath, searchPath } from "../ui/router";
import type { PostText_post$data, PostText_post$key } from "./__generated__/PostText_post.graphql";

type Entity = PostText_post$data["entities"][number];

/** The text of a post, in which mentions, hashtags and links are links. */
export function PostText({ post }: { post: PostText_post$key }) {
  const { text, entities } = useFragment(
    graphql`
      fragment PostText_post on Post {
        text
        entities {
          __typename
          start
          end
          ... on MentionEntity {
            user {
              id
              login
            }
          }
          ... on HashtagEntity {
            tag
          }
          ... on LinkEntity {
            url
          }
        }
      }
    `,
    post,
  );
  if (text === "") return null;
  const parts: ReactNode[] = [];
  let end = 0;
  for (const entity of entities) {
    // Ranges count UTF-16 code units, as JavaScript strings do.
    parts.push(text.slice(end, entity.start), linked(entity, text.slice(entity.start, entity.end)));
    end = entity.end;
  }
  return (
    <p className="post-text" dir="auto">
      {parts}
      {text.slice(end)}
    </p>
  );
}

/** Return a link, or plain text for a deleted user and for types that this version does not know. */
function linked({ __typename, start, user, tag, url }: Entity, text: string): ReactNode {
  if (__typename === "MentionEntity" && user) {
    return (
      <a key={start} href={profilePath(user.login)}>
        {text}
      </a>
    );
  }
  if (__typename === "HashtagEntity" && tag) {
    return (
      <a key={start} href={searchPath(`#${tag}`)}>
        {text}
      </a>
    );
  }
  if (__typename === "LinkEntity" && url) {
    return (
      <a key={start} href={url} target="_blank" rel="noopener noreferrer nofollow ugc">
        {text}
      </a>
    );
  }
  return text;
}
