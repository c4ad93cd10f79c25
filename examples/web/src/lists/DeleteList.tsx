import { graphql, useMutation } from "react-relay";
import { useProblem } from "../post/useProblem";
import { listsPath } from "../ui/router";
import { useToast } from "../ui/Toasts";
import { changeLists } from "./store";
import type { DeleteListMutation } from "./__generated__/DeleteListMutation.graphql";

/** Deletes a list after a confirmation, and shows the other lists. */
export function DeleteList({ listId, name }: { listId: string; name: string }) {
  const toast = useToast();
  const { onErrors, onError } = useProblem();
  const [remove, isRemoving] = useMutation<DeleteListMutation>(graphql`
    mutation DeleteListMutation($input: DeleteListInput!) {
      deleteList(input: $input) {
        deletedListId
        userErrors {
          message
        }
      }
    }
  `);

  function press() {
    if (!confirm(`Delete the list ${name}? It cannot be restored.`)) return;
    remove({
      variables: { input: { listId } },
      updater(store, data) {
        const deleted = data?.deleteList?.deletedListId;
        changeLists(store, (lists) => lists.filter((each) => each.getDataID() !== deleted));
      },
      onCompleted({ deleteList }) {
        onErrors(deleteList?.userErrors);
        if (!deleteList?.deletedListId) return;
        toast("The list has been deleted.");
        location.replace(listsPath);
      },
      onError,
    });
  }

  return (
    <button className="link link-quiet" disabled={isRemoving} onClick={press}>
      Delete
    </button>
  );
}
