// A home timeline with graphql-ws: node graphql-ws.mjs URL TOKEN
import { LIVE, PAGE, ask, fail, open, take } from "./home.mjs";
import { socket } from "./socket.mjs";

socket.subscribe(
  { query: LIVE, variables: { after: open(await ask(PAGE)) } },
  {
    next: ({ data, errors }) => (errors ? fail(errors) : take(data.homeTimeline)),
    error: fail,
    complete: () => fail("The stream has ended."),
  },
);
