import type { RecordProxy, RecordSourceProxy } from "relay-runtime";

/** Change the viewer's lists in the store, if they are loaded. */
export function changeLists(store: RecordSourceProxy, change: (lists: RecordProxy[]) => RecordProxy[]): void {
  const viewer = store.getRoot().getLinkedRecord("viewer") as RecordProxy | null | undefined;
  const lists = viewer?.getLinkedRecords("lists") as RecordProxy[] | null | undefined;
  if (lists) viewer?.setLinkedRecords(change(lists), "lists");
}
