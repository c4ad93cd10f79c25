import type { MouseEvent } from "react";
import { graphql, useFragment } from "react-relay";
import { useMute } from "./useMute";
import type { MuteButton_user$key } from "./__generated__/MuteButton_user.graphql";

/** Mutes or unmutes a user. */
export function MuteButton({ user, className }: { user: MuteButton_user$key; className?: string }) {
  const { id, login, relationship } = useFragment(
    graphql`
      fragment MuteButton_user on User {
        id
        login
        relationship {
          id
          muting
        }
      }
    `,
    user,
  );
  const [change, isChanging] = useMute();
  if (!relationship) return null;
  const { muting } = relationship;
  const verb = muting ? "Unmute" : "Mute";

  function press(event: MouseEvent) {
    const isDoubleClick = event.detail > 1; // counts once
    if (!isChanging && !isDoubleClick) change(id, !muting);
  }

  return (
    <button className={className} aria-label={`${verb} @${login}`} aria-disabled={isChanging} onClick={press}>
      {verb}
    </button>
  );
}
