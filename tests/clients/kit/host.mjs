// Shows lists in a cache to each connection of a Unix socket: node host.mjs SOCKET
// The first line of a connection has the name of the cache and options, each line after it a command: see driver.mjs.
import { register } from "node:module";
import { createServer } from "node:net";
import { createInterface } from "node:readline";
import { Connection, drive } from "./driver.mjs";

register("./libraries.mjs", import.meta.url);

async function run(stream) {
  const lines = createInterface({ input: stream })[Symbol.asyncIterator]();
  const say = (value) => stream.writable && stream.write(`${JSON.stringify(value)}\n`);
  const end = (problem) => say({ problem: String(problem?.stack ?? problem) });
  const options = JSON.parse((await lines.next()).value);
  const connection = new Connection(options);
  stream.on("close", () => connection.close());
  try {
    const { open } = await import(`./${options.cache}.mjs`);
    const cache = await open(connection, options, end);
    await drive(connection, lines, say, cache, options.lists);
  } catch (problem) {
    end(problem);
  }
}

const server = createServer((stream) => {
  stream.on("error", () => undefined); // the test has closed the connection
  run(stream);
});
server.listen(process.argv[2], () => console.log("listening"));
process.stdin.on("end", () => process.exit()).resume(); // when the process that has started this one ends
