import type { SubmitEvent } from "react";
import { graphql, useMutation } from "react-relay";
import type { RecordProxy } from "relay-runtime";
import { Field } from "../ui/Field";
import { textOf } from "../ui/formData";
import { FormErrors } from "../ui/FormErrors";
import { useToast } from "../ui/Toasts";
import { useErrors } from "../ui/useErrors";
import { errorsOf, fieldErrors, outage } from "../ui/userErrors";
import { changeLists } from "./store";
import type { NewListMutation } from "./__generated__/NewListMutation.graphql";

interface Props {
  /** The first members. */
  userIds?: readonly string[];
  /** Called with the new list. */
  onCreated?: (id: string) => void;
}

/** A form that creates a list. The newest list is the first one. */
export function NewList({ userIds, onCreated }: Props) {
  const [create, isCreating] = useMutation<NewListMutation>(graphql`
    mutation NewListMutation($input: CreateListInput!) {
      createList(input: $input) {
        list {
          id
          name
          membersCount
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
    if (isCreating) return;
    setErrors([]);
    create({
      variables: { input: { name: textOf(new FormData(event.currentTarget), "name"), userIds } },
      updater(store) {
        const list = store.getRootField("createList").getLinkedRecord("list") as RecordProxy | null;
        if (list) changeLists(store, (lists) => [list, ...lists]);
      },
      onCompleted({ createList }) {
        if (!createList?.list) {
          setErrors(fieldErrors(createList?.userErrors));
          return;
        }
        form.current?.reset();
        toast("The list has been created.");
        onCreated?.(createList.list.id);
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  return (
    <form ref={form} className="new-list" onSubmit={submit} noValidate>
      <Field label="Name of a new list" name="name" dir="auto" autoComplete="off" errors={errorsOf(errors, "name")} />
      <button className="button button-quiet" aria-disabled={isCreating}>
        Create
      </button>
      <FormErrors errors={errors.filter(({ field }) => field !== "name")} />
    </form>
  );
}
