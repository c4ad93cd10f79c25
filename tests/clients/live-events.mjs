// Feeds subscriptions to the playground's collector and prints what it would show as one JSON object.
import { collect } from "../../server/playground/live-events.js";

const event = (__typename, number) => ({ data: { homeTimeline: { __typename, number } } });
const typeOf = ({ data, errors }) => (errors ? "error" : data.homeTimeline.__typename);

async function* mixed() {
  for (const name of ["Checkpoint", "Post", "Checkpoint", "Checkpoint", "Checkpoint", "Post"]) yield event(name);
  throw new Error("The socket closed.");
}

async function* many() {
  for (let number = 0; number < 150; number += 1) yield event("Post", number);
}

async function last(source) {
  let shown;
  for await (const value of collect(source)) shown = value;
  return shown;
}

let returned = false;
async function* endless() {
  try {
    for (;;) yield event("Post");
  } finally {
    returned = true;
  }
}

const { received, newestFirst } = await last(mixed());
const { newestFirst: kept } = await last(many());
const stopped = collect(endless());
await stopped.next();
await stopped.return();
const numbers = kept.map(({ data }) => data.homeTimeline.number);
console.log(
  JSON.stringify({
    kinds: newestFirst.map(typeOf),
    received,
    kept: kept.length,
    newest: numbers.at(0),
    oldest: numbers.at(-1),
    returned,
  }),
);
