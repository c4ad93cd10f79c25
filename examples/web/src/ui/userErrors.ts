import { failure } from "@fanline/client";

/** An error of a mutation, as all mutations of this app select it. */
export interface UserError {
  readonly code: string;
  readonly message: string;
  readonly field: readonly string[] | null | undefined;
  readonly params: readonly { readonly name: string; readonly value: string }[];
}

/** A failure to show next to a field; `field` is undefined if it concerns the whole form. */
export interface FieldError {
  readonly field: string | undefined;
  readonly text: string;
}

/** Return the errors of a mutation as texts. There is at least one, since a mutation without a result has failed. */
export function fieldErrors(errors: readonly UserError[] = []): FieldError[] {
  if (errors.length === 0) return [outage(undefined)];
  return errors.map((error) => ({ field: error.field?.[0], text: textOf(error) }));
}

/** Return the errors of one field, or those that concern no field. */
export function errorsOf(errors: readonly FieldError[], field?: string): FieldError[] {
  return errors.filter((error) => error.field === field);
}

/** Describe a failure that is not a user error, such as an outage. */
export function outage(problem: unknown): FieldError {
  const { code, retryAfter } = failure(problem);
  const seconds = Math.ceil(retryAfter ?? 0);
  const when = seconds > 1 ? `in ${String(seconds)} seconds` : "in a moment";
  const text =
    code === "RATE_LIMITED"
      ? `This is more than the server allows. Try again ${when}.`
      : `The server did not accept the request. Nothing is lost: try again ${when}.`;
  return { field: undefined, text };
}

/** Return this app's own text for some codes, and otherwise the server's. The codes allow texts in any language. */
function textOf({ code, message, field, params }: UserError): string {
  const max = params.find(({ name }) => name === "max")?.value;
  switch (code) {
    case "WRONG_CREDENTIALS":
      return field?.length ? "The password is wrong." : "The login or the password is wrong.";
    case "LOGIN_TAKEN":
      return "This login is already taken.";
    case "TEXT_EMPTY":
      return "Write something first.";
    case "TEXT_TOO_LONG":
      return max ? `A post can have up to ${Number(max).toLocaleString("en")} characters.` : message;
    default:
      return message;
  }
}
