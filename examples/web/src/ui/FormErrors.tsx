import type { FieldError } from "./userErrors";

/** The errors that belong to no single field. */
export function FormErrors({ errors }: { errors: readonly FieldError[] }) {
  return (
    <div role="alert" className="form-errors">
      {errors.map(({ text }) => (
        <p key={text}>{text}</p>
      ))}
    </div>
  );
}
