// A home timeline with graphql-sse: node graphql-sse.mjs URL TOKEN
import { pause, resuming } from "@fanline/client";
import { createClient } from "graphql-sse";
import { LIVE, PAGE, ask, fail, headers, open, take, url } from "./home.mjs";

const client = resuming(createClient({ url, headers, retryAttempts: Infinity, retry: pause }));

client.subscribe(
  { query: LIVE, variables: { after: open(await ask(PAGE)) } },
  {
    next: ({ data, errors }) => (errors ? fail(errors) : take(data.homeTimeline)),
    error: fail,
    complete: () => fail("The stream has ended."),
  },
);
