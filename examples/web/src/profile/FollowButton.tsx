import type { MouseEvent } from "react";
import { graphql, useFragment } from "react-relay";
import { useFollow } from "./useFollow";
import type { FollowButton_user$key } from "./__generated__/FollowButton_user.graphql";

interface Props {
  user: FollowButton_user$key;
  viewerId: string;
}

export function FollowButton({ user, viewerId }: Props) {
  const { id, name, relationship } = useFragment(
    graphql`
      fragment FollowButton_user on User {
        id
        name
        relationship {
          id
          state
          following
          followedBy
          blocking
          blockedBy
        }
      }
    `,
    user,
  );
  const [change, isChanging] = useFollow(viewerId);
  if (!relationship || relationship.state === "YOU") return null;
  const { following, followedBy, blocking, blockedBy } = relationship;
  if (blocking || blockedBy) return null;

  function press(event: MouseEvent) {
    const isDoubleClick = event.detail > 1; // counts once
    if (!isChanging && !isDoubleClick) change(id, !following);
  }

  const text = following ? "Following" : followedBy ? "Follow back" : "Follow";
  return (
    <button
      className={following ? "button button-quiet optimistic" : "button optimistic"}
      aria-label={`${text} ${name}`}
      aria-disabled={isChanging}
      onClick={press}
    >
      {text}
    </button>
  );
}
