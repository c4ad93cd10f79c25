/** Write an object into Relay's store as the response to an operation would. Return its record. */
export function write(store, path, object) {
  const id = object.id ?? path;
  const record = store.get(id) ?? store.create(id, object.__typename ?? "PageInfo");
  for (const [name, value] of Object.entries(object)) {
    const place = `${path}:${name}`;
    if (Array.isArray(value)) record.setLinkedRecords(value.map((each, at) => write(store, `${place}:${at}`, each)), name);
    else if (value && typeof value === "object") record.setLinkedRecord(write(store, place, value), name);
    else record.setValue(value, name);
  }
  return record;
}
