// Writes what Graphcache knows of the schema: node schema.mjs ../fanline/schema.graphql
import { readFileSync, writeFileSync } from "node:fs";
import { buildSchema, introspectionFromSchema } from "graphql";

const schema = buildSchema(readFileSync(process.argv[2], "utf8"));
writeFileSync("src/schema.json", JSON.stringify(introspectionFromSchema(schema)));
