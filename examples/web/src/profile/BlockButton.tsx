import { useId, useRef } from "react";
import type { MouseEvent } from "react";
import { createPortal } from "react-dom";
import { graphql, useFragment } from "react-relay";
import { useBlock } from "./useBlock";
import type { BlockButton_user$key } from "./__generated__/BlockButton_user.graphql";

/** Blocks a user after a confirmation in a dialog, or unblocks the user at once. */
export function BlockButton({ user, className }: { user: BlockButton_user$key; className?: string }) {
  const { id, login, relationship } = useFragment(
    graphql`
      fragment BlockButton_user on User {
        id
        login
        relationship {
          id
          blocking
        }
      }
    `,
    user,
  );
  const [change, isChanging] = useBlock();
  const dialog = useRef<HTMLDialogElement>(null);
  const titleId = useId();
  const textId = useId();
  if (!relationship) return null;
  const { blocking } = relationship;
  const verb = blocking ? "Unblock" : "Block";

  function press(event: MouseEvent) {
    const isDoubleClick = event.detail > 1; // counts once
    if (isChanging || isDoubleClick) return;
    if (blocking) change(id, false);
    else dialog.current?.showModal();
  }

  function confirmed() {
    dialog.current?.close();
    change(id, true);
  }

  return (
    <>
      <button className={className} aria-label={`${verb} @${login}`} aria-disabled={isChanging} onClick={press}>
        {verb}
      </button>
      {createPortal(
        <dialog ref={dialog} aria-labelledby={titleId} aria-describedby={textId} className="card">
          <h2 id={titleId}>Block @{login}?</h2>
          <p id={textId}>
            You and @{login} will not see each other’s posts, and cannot follow or answer each other. @{login} can find
            out. You can unblock them at any time, but follows between you end.
          </p>
          <div className="dialog-end">
            <button className="button button-quiet" onClick={() => dialog.current?.close()}>
              Cancel
            </button>
            <button className="button" onClick={confirmed}>
              Block
            </button>
          </div>
        </dialog>,
        document.body, // a menu that closes would hide it
      )}
    </>
  );
}
