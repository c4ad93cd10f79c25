// The documents of the hooks fit the schema.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { buildSchema, parse, validate } from "graphql";
import * as documents from "../dist/documents.js";

const schema = buildSchema(await readFile(new URL("../../schema.graphql", import.meta.url), "utf8"));

for (const [name, { query, subscription }] of Object.entries(documents)) {
  test(`those of ${name}`, () => {
    for (const document of [query, subscription]) assert.deepEqual(validate(schema, parse(document)), []);
  });
}
