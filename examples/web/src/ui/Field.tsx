import { useId } from "react";
import type { ComponentProps } from "react";
import type { FieldError } from "./userErrors";

interface Common {
  label: string;
  errors: readonly FieldError[];
  hint?: string;
}

type Area = { rows: number } & ComponentProps<"textarea">;
type Input = { rows?: never } & ComponentProps<"input">;

/** A labelled input with the errors that belong to it. */
export function Field({ label, errors, hint, ...input }: Common & (Area | Input)) {
  const id = useId();
  const described = `${id}-about`;
  const attributes = { id, "aria-invalid": errors.length > 0, "aria-describedby": described };
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {isArea(input) ? <textarea {...input} {...attributes} /> : <input {...input} {...attributes} />}
      <div id={described} className={errors.length ? "field-error" : "field-hint"} aria-live="polite">
        {errors.length ? errors.map(({ text }) => <p key={text}>{text}</p>) : hint}
      </div>
    </div>
  );
}

function isArea(input: Area | Input): input is Area {
  return input.rows !== undefined;
}
