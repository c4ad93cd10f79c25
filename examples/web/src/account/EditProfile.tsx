import type { RefObject, SubmitEvent } from "react";
import { graphql, useFragment, useMutation } from "react-relay";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import type { EditProfileMutation } from "./__generated__/EditProfileMutation.graphql";
import type { EditProfile_user$key } from "./__generated__/EditProfile_user.graphql";

interface Props {
  user: EditProfile_user$key;
  dialog: RefObject<HTMLDialogElement | null>;
}

/** A modal dialog: the browser keeps the focus in it, and closes it with Escape. */
export function EditProfile({ user, dialog }: Props) {
  const { name, bio } = useFragment(
    graphql`
      fragment EditProfile_user on User {
        name
        bio
      }
    `,
    user,
  );
  const [update, isUpdating] = useMutation<EditProfileMutation>(graphql`
    mutation EditProfileMutation($input: UpdateProfileInput!) {
      updateProfile(input: $input) {
        user {
          id
          name
          bio
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
    const values = new FormData(event.currentTarget);
    setErrors([]);
    update({
      variables: { input: { name: textOf(values, "name"), bio: textOf(values, "bio") } },
      onCompleted({ updateProfile }) {
        if (updateProfile?.user) dialog.current?.close();
        else setErrors(fieldErrors(updateProfile?.userErrors));
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  function forget() {
    setErrors([]);
    form.current?.reset();
  }

  return (
    <dialog ref={dialog} aria-labelledby="edit-title" className="card" onClose={forget}>
      <h2 id="edit-title">Edit profile</h2>
      <form ref={form} onSubmit={submit} noValidate key={name + bio}>
        <Field label="Name" name="name" dir="auto" defaultValue={name} errors={errorsOf(errors, "name")} />
        <Field label="About you" name="bio" rows={4} dir="auto" defaultValue={bio} errors={errorsOf(errors, "bio")} />
        <FormErrors errors={errorsOf(errors)} />
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
