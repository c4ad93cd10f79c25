import type { SubmitEvent } from "react";
import { graphql, useMutation } from "react-relay";
import { forgetDrafts } from "../post/draft";
import { sessionChangedEverywhere } from "../session/changes";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import type { DeleteAccountMutation } from "./__generated__/DeleteAccountMutation.graphql";

/** Deletes the account after a confirmation. This ends all sessions, and other tabs show the log-in screen, too. */
export function DeleteAccount({ login }: { login: string }) {
  const [remove, isRemoving] = useMutation<DeleteAccountMutation>(graphql`
    mutation DeleteAccountMutation($input: DeleteAccountInput!) {
      deleteAccount(input: $input) {
        deletedUserId
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
    if (isRemoving) return;
    const password = textOf(new FormData(event.currentTarget), "password");
    if (password && !confirm(`Delete @${login} and all posts? This cannot be undone.`)) return;
    setErrors([]);
    remove({
      variables: { input: { password } },
      onCompleted({ deleteAccount }) {
        if (!deleteAccount?.deletedUserId) {
          setErrors(fieldErrors(deleteAccount?.userErrors));
          return;
        }
        forgetDrafts(deleteAccount.deletedUserId);
        sessionChangedEverywhere();
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  return (
    <form ref={form} className="card password" onSubmit={submit} noValidate aria-labelledby="deletion-title">
      <h2 id="deletion-title">Delete your account</h2>
      <p>Your profile, posts, likes, follows and lists are deleted for everybody. Nobody can use @{login} again.</p>
      <input name="login" aria-label="Login" autoComplete="username" value={login} readOnly hidden />
      <Field
        label="Your password"
        name="password"
        type="password"
        autoComplete="current-password"
        errors={errorsOf(errors, "password")}
      />
      <FormErrors errors={errorsOf(errors)} />
      <button className="button button-danger" aria-disabled={isRemoving}>
        Delete account
      </button>
    </form>
  );
}
