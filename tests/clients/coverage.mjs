// Measures with GraphQL Inspector which fields of the schema the operations of a folder select.
// Usage: node coverage.mjs SCHEMA FOLDER; prints the fields that no operation selects, by type.
import { readdirSync, readFileSync } from "node:fs";
import { coverage } from "@graphql-inspector/core";
import { buildSchema, Source } from "graphql";

const [schema, folder] = process.argv.slice(2);
const sources = readdirSync(folder)
  .filter((name) => name.endsWith(".graphql"))
  .map((name) => new Source(readFileSync(`${folder}/${name}`, "utf8"), name));
const { types } = await coverage(buildSchema(readFileSync(schema, "utf8")), sources);
const unused = Object.entries(types).map(([type, { children }]) => [
  type,
  Object.entries(children ?? {})
    .filter(([, { hits }]) => hits === 0)
    .map(([field]) => field),
]);
console.log(JSON.stringify({ sources: sources.length, unused: Object.fromEntries(unused) }));
