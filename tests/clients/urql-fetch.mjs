// A home timeline with urql and nothing else, over server-sent events: node urql-fetch.mjs URL TOKEN
import { pause } from "@fanline/client";
import { Client, fetchExchange } from "@urql/core";
import { onEnd, pipe, subscribe } from "wonka";
import { LIVE, PAGE, fail, headers, open, take, url } from "./home.mjs";

const client = new Client({ url, fetchOptions: { headers }, fetchSubscriptions: true, exchanges: [fetchExchange] });

function listen(after, attempts = 0) {
  pipe(
    client.subscription(LIVE, { after }),
    onEnd(() => pause(attempts).then(() => listen(after, attempts + 1))),
    subscribe(({ data, error, hasNext }) => {
      if (error?.graphQLErrors.length) fail(error);
      if (!data || !hasNext) return; // when a stream ends, its last result comes once more
      attempts = 0;
      after = data.homeTimeline.cursor;
      take(data.homeTimeline);
    }),
  );
}

const page = await client.query(PAGE, {});
listen(open(page.data));
