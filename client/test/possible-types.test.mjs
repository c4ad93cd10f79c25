import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { buildSchema, isInterfaceType } from "graphql";
import { possibleTypes } from "../dist/apollo.js";

test("the possible types are those of the schema", async () => {
  const schema = buildSchema(await readFile(new URL("../../schema.graphql", import.meta.url), "utf8"));
  const interfaces = Object.values(schema.getTypeMap()).filter(isInterfaceType);
  const expected = interfaces.map((each) => [each.name, schema.getPossibleTypes(each).map(({ name }) => name).sort()]);
  assert.deepEqual(possibleTypes, Object.fromEntries(expected));
});
