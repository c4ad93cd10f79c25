// Prints the size of the bundle as browsers load it, and fails if it is too large.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";

const LIMIT = 200_000;
const folder = new URL("../dist/assets/", import.meta.url);
const size = readdirSync(folder)
  .filter((name) => /\.(js|css)$/.test(name))
  .reduce((sum, name) => sum + gzipSync(readFileSync(new URL(name, folder))).length, 0);

console.log(`The bundle has ${(size / 1000).toFixed(1)} KB gzipped; the limit is ${LIMIT / 1000} KB.`);
if (size > LIMIT) process.exit(1);
