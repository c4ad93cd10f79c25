import type { SubmitEvent } from "react";
import { fetchQuery, graphql, useMutation, useRelayEnvironment } from "react-relay";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { useToast } from "../ui/Toasts";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import type { ChangePasswordMutation } from "./__generated__/ChangePasswordMutation.graphql";
import type { ChangePasswordQuery } from "./__generated__/ChangePasswordQuery.graphql";

/** Changes the password, which ends all other sessions. The cookie gets the new session of this browser. */
export function ChangePassword({ login }: { login: string }) {
  const environment = useRelayEnvironment();
  const [change, isChanging] = useMutation<ChangePasswordMutation>(graphql`
    mutation ChangePasswordMutation($input: ChangePasswordInput!) {
      changePassword(input: $input) {
        credentials {
          expiresAt
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
  const toast = useToast();
  const { errors, setErrors, form } = useErrors();

  function submit(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isChanging) return;
    const values = new FormData(event.currentTarget);
    const input = { currentPassword: textOf(values, "currentPassword"), newPassword: textOf(values, "newPassword") };
    setErrors([]);
    change({
      variables: { input },
      onCompleted({ changePassword }) {
        if (!changePassword?.credentials) {
          setErrors(fieldErrors(changePassword?.userErrors));
          return;
        }
        form.current?.reset();
        toast("Your password has been changed. All other sessions have ended.");
        fetchQuery<ChangePasswordQuery>(environment, sessions, {}).subscribe({}); // the list above shows what it returns
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  return (
    <form ref={form} className="card password" onSubmit={submit} noValidate aria-labelledby="password-title">
      <h2 id="password-title">Change the password</h2>
      <input name="login" aria-label="Login" autoComplete="username" value={login} readOnly hidden />
      <Field
        label="Current password"
        name="currentPassword"
        type="password"
        autoComplete="current-password"
        errors={errorsOf(errors, "currentPassword")}
      />
      <Field
        label="New password"
        name="newPassword"
        type="password"
        autoComplete="new-password"
        hint="At least 8 characters. All other sessions end."
        errors={errorsOf(errors, "newPassword")}
      />
      <FormErrors errors={errorsOf(errors)} />
      <button className="button" aria-disabled={isChanging}>
        Change password
      </button>
    </form>
  );
}

const sessions = graphql`
  query ChangePasswordQuery {
    viewer {
      sessions {
        id
        createdAt
        lastUsedAt
        userAgent
        current
      }
    }
  }
`;
