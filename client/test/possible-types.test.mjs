import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { buildSchema, getNamedType, isInterfaceType, isObjectType } from "graphql";
import { possibleTypes } from "../dist/apollo.js";
import { kindOf } from "../dist/lists.js";
import { keys } from "../dist/urql.js";

const schema = buildSchema(await readFile(new URL("../../schema.graphql", import.meta.url), "utf8"));
const typesOf = (name) => schema.getPossibleTypes(schema.getType(name)).map(String);

/** Add the types that a query can reach from a type to a set. */
function reach(type, found) {
  if (found.has(type)) return found;
  found.add(type);
  if (isInterfaceType(type)) for (const each of schema.getPossibleTypes(type)) reach(each, found);
  if (isObjectType(type)) for (const field of Object.values(type.getFields())) reach(getNamedType(field.type), found);
  return found;
}

test("the possible types are those of the schema", () => {
  const interfaces = Object.values(schema.getTypeMap()).filter(isInterfaceType);
  const expected = interfaces.map(({ name }) => [name, typesOf(name).sort()]);
  assert.deepEqual(possibleTypes, Object.fromEntries(expected));
});

test("all types without ids have a key for Graphcache, and it has no other types", () => {
  const reached = [...reach(schema.getQueryType(), new Set())].filter(isObjectType);
  const without = reached.filter((type) => !type.getFields().id && type !== schema.getQueryType());
  assert.deepEqual(without.map(String).filter((name) => !keys[name]), []);
  assert.deepEqual(Object.keys(keys).filter((name) => !schema.getType(name)), []);
});

test("each type of notifications has its kind", () => {
  const kinds = schema.getType("NotificationKind").getValues().map(({ name }) => name);
  assert.deepEqual(typesOf("Notification").map(kindOf).sort(), kinds.sort());
  assert.equal(kindOf("FollowRequestNotification"), "FOLLOW_REQUEST");
});
