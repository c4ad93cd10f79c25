import { useState } from "react";
import type { MouseEvent } from "react";
import { graphql, useMutation } from "react-relay";
import { useProblem } from "../post/useProblem";
import type { MemberButtonMutation } from "./__generated__/MemberButtonMutation.graphql";

interface Props {
  listId: string;
  userId: string;
  login: string;
  listName: string;
  /** Whether the user is a member when the button appears on the screen. Adding a member again changes nothing. */
  isMember: boolean;
}

/** Adds a user to a list, or removes the user. The button changes when the server answers. */
export function MemberButton({ listId, userId, login, listName, isMember: wasMember }: Props) {
  const [isMember, setIsMember] = useState(wasMember);
  const [update, isUpdating] = useMutation<MemberButtonMutation>(graphql`
    mutation MemberButtonMutation($input: UpdateListInput!) {
      updateList(input: $input) {
        list {
          id
          membersCount
        }
        userErrors {
          message
        }
      }
    }
  `);
  const { onErrors, onError } = useProblem();
  const [verb, preposition] = isMember ? ["Remove", "from"] : ["Add", "to"];

  function press(event: MouseEvent) {
    const isDoubleClick = event.detail > 1; // counts once
    if (isUpdating || isDoubleClick) return;
    update({
      variables: { input: { listId, [isMember ? "removeUserIds" : "addUserIds"]: [userId] } },
      onCompleted({ updateList }) {
        onErrors(updateList?.userErrors);
        if (updateList?.list) setIsMember(!isMember);
      },
      onError,
    });
  }

  return (
    <button
      className="button button-quiet"
      aria-label={`${verb} @${login} ${preposition} ${listName}`}
      aria-disabled={isUpdating}
      onClick={press}
    >
      {verb}
    </button>
  );
}
