import type { RecordProxy, RecordSourceProxy } from "relay-runtime";

/** Change which lists the viewer has, if the store knows them. */
export function changeLists(store: RecordSourceProxy, change: (lists: RecordProxy[]) => RecordProxy[]): void {
  const viewer = store.getRoot().getLinkedRecord("viewer") as RecordProxy | null | undefined;
  const lists = viewer?.getLinkedRecords("lists") as RecordProxy[] | null | undefined;
  if (lists) viewer?.setLinkedRecords(change(lists), "lists");
}
