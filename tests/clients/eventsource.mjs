// A home timeline without any GraphQL client: node eventsource.mjs URL TOKEN
import { EventSource } from "eventsource";
import { LIVE, PAGE, ask, fail, headers, open, take, url } from "./home.mjs";

const parameters = new URLSearchParams({ query: LIVE, variables: JSON.stringify({ after: open(await ask(PAGE)) }) });
const source = new EventSource(`${url}?${parameters}`, {
  fetch: (address, init) => fetch(address, { ...init, headers: { ...init.headers, ...headers } }),
});
source.addEventListener("next", (message) => {
  const { data, errors } = JSON.parse(message.data);
  errors ? fail(errors) : take(data.homeTimeline);
});
source.addEventListener("complete", () => fail("The stream has ended."));
