import { useState, useSyncExternalStore } from "react";
import type { SubmitEvent } from "react";
import { graphql, useMutation } from "react-relay";
import { hasExpired, onSessionChange, sessionChangedEverywhere } from "../session/changes";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { Logo } from "../ui/icons";
import { ThemeButton } from "../ui/ThemeButton";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import type { UserError } from "../ui/userErrors";
import type { LogInScreenLogInMutation } from "./__generated__/LogInScreenLogInMutation.graphql";
import type { LogInScreenSignUpMutation } from "./__generated__/LogInScreenSignUpMutation.graphql";

type Mode = "log-in" | "sign-up";

interface Payload {
  readonly credentials: unknown;
  readonly userErrors: readonly UserError[];
}

/** The session is in a cookie: the `token` of the credentials is null, and is not selected. */
export function LogInScreen() {
  const [mode, setMode] = useState<Mode>("log-in");
  const { errors, setErrors, form } = useErrors();
  const isExpired = useSyncExternalStore(onSessionChange, hasExpired);
  const [logIn, isLoggingIn] = useMutation<LogInScreenLogInMutation>(graphql`
    mutation LogInScreenLogInMutation($input: LogInInput!) {
      logIn(input: $input) {
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
  const [signUp, isSigningUp] = useMutation<LogInScreenSignUpMutation>(graphql`
    mutation LogInScreenSignUpMutation($input: SignUpInput!) {
      signUp(input: $input) {
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
  const isNew = mode === "sign-up";

  function finish(payload: Payload | null | undefined) {
    if (payload?.credentials) sessionChangedEverywhere();
    else setErrors(fieldErrors(payload?.userErrors));
  }

  function submit(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isLoggingIn || isSigningUp) return;
    const values = new FormData(event.currentTarget);
    const input = { login: textOf(values, "login").trim(), password: textOf(values, "password") };
    const onError = (problem: Error): void => setErrors([outage(problem)]);
    setErrors([]);
    if (isNew) {
      const name = textOf(values, "name").trim();
      signUp({
        variables: { input: name ? { ...input, name } : input },
        onCompleted: (data) => finish(data.signUp),
        onError,
      });
    } else {
      logIn({ variables: { input }, onCompleted: (data) => finish(data.logIn), onError });
    }
  }

  return (
    <main className="welcome">
      <title>{`${isNew ? "Sign up" : "Log in"} · Fanline`}</title>
      <ThemeButton />
      <p className="brand">
        <Logo />
        Fanline
      </p>
      <div className="card">
        <h1>{isNew ? "Create your account" : "Log in"}</h1>
        <div role="status">{isExpired && <p className="notice">Your session has ended. Log in again to continue.</p>}</div>
        <form ref={form} onSubmit={submit} noValidate>
          <Field
            label="Login"
            name="login"
            autoComplete="username"
            autoCapitalize="none"
            spellCheck={false}
            autoFocus
            hint={isNew ? "2 to 30 characters: a to z, digits and _" : ""}
            errors={errorsOf(errors, "login")}
          />
          {isNew && <Field label="Name" name="name" autoComplete="name" errors={errorsOf(errors, "name")} />}
          <Field
            label="Password"
            name="password"
            type="password"
            autoComplete={isNew ? "new-password" : "current-password"}
            hint={isNew ? "At least 8 characters" : ""}
            errors={errorsOf(errors, "password")}
          />
          <FormErrors errors={errorsOf(errors)} />
          <button className="button button-wide" aria-disabled={isLoggingIn || isSigningUp}>
            {isNew ? "Sign up" : "Log in"}
          </button>
        </form>
        <p className="aside">
          {isNew ? "Already have an account?" : "New here?"}{" "}
          <button
            className="link"
            onClick={() => {
              setErrors([]);
              setMode(isNew ? "log-in" : "sign-up");
            }}
          >
            {isNew ? "Log in instead" : "Create an account"}
          </button>
        </p>
      </div>
    </main>
  );
}
