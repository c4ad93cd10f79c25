import { useEffect, useRef, useState } from "react";
import type { RefObject } from "react";
import type { FieldError } from "./userErrors";

interface Errors {
  errors: readonly FieldError[];
  setErrors: (errors: readonly FieldError[]) => void;
  form: RefObject<HTMLFormElement | null>;
}

/** Keep the errors of a form. New errors move the focus to the first field that has one. */
export function useErrors(): Errors {
  const [errors, setErrors] = useState<readonly FieldError[]>([]);
  const form = useRef<HTMLFormElement>(null);

  useEffect(() => {
    if (errors.length) form.current?.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
  }, [errors]);

  return { errors, setErrors, form };
}
