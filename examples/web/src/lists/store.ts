import type { RecordProxy, RecordSourceProxy } from "relay-runtime";

/** Change which lists the viewer has, if the store knows them. */
export function changeLists(store: RecordSourceProxy, change: (lists: RecordProxy[]) => RecordProxy[]): void {
  const root = store.getRoot();
  const lists = root.getLinkedRecords("lists") as RecordProxy[] | null | undefined;
  if (lists) root.setLinkedRecords(change(lists), "lists");
}
