import type { RefObject, SubmitEvent } from "react";
import { graphql, useMutation } from "react-relay";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import type { RenameListMutation } from "./__generated__/RenameListMutation.graphql";

interface Props {
  listId: string;
  name: string;
  dialog: RefObject<HTMLDialogElement | null>;
}

/** A modal dialog with the name of a list. */
export function RenameList({ listId, name, dialog }: Props) {
  const [update, isUpdating] = useMutation<RenameListMutation>(graphql`
    mutation RenameListMutation($input: UpdateListInput!) {
      updateList(input: $input) {
        list {
          id
          name
        }
        userErrors {
          code
          message
          field
          params {
            name
            value
          }
        }
      }
    }
  `);
  const { errors, setErrors, form } = useErrors();

  function submit(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isUpdating) return;
    setErrors([]);
    update({
      variables: { input: { listId, name: textOf(new FormData(event.currentTarget), "name") } },
      onCompleted({ updateList }) {
        if (updateList?.list) dialog.current?.close();
        else setErrors(fieldErrors(updateList?.userErrors));
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  function forget() {
    setErrors([]);
    form.current?.reset();
  }

  return (
    <dialog ref={dialog} aria-labelledby="rename-title" className="card" onClose={forget}>
      <h2 id="rename-title">Rename the list</h2>
      <form ref={form} onSubmit={submit} noValidate key={name}>
        <Field label="Name" name="name" dir="auto" autoComplete="off" defaultValue={name} errors={errorsOf(errors, "name")} />
        <FormErrors errors={errors.filter(({ field }) => field !== "name")} />
        <div className="dialog-end">
          <button type="button" className="button button-quiet" onClick={() => dialog.current?.close()}>
            Cancel
          </button>
          <button className="button" aria-disabled={isUpdating}>
            Save
          </button>
        </div>
      </form>
    </dialog>
  );
}
