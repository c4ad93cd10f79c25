import { useToast } from "../ui/Toasts";
import { outage } from "../ui/userErrors";

interface Problem {
  readonly message: string;
}

interface Report {
  /** Show the first error of a payload, if there is one. */
  onErrors: (errors: readonly Problem[] | undefined) => void;
  onError: (problem: Error) => void;
}

/** Return callbacks that show the failure of a mutation that has no form. */
export function useProblem(): Report {
  const toast = useToast();
  return {
    onErrors(errors = []) {
      if (errors[0]) toast(errors[0].message);
    },
    onError: (problem) => toast(outage(problem).text),
  };
}
