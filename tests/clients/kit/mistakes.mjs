// Renders hooks that lack something in a query, a cache or an environment: node mistakes.mjs URL TOKEN ARTIFACTS
// Prints the errors, by library and by what is missing or wrong.
import { register } from "node:module";
import { PAGE } from "./documents.mjs";
import { Connection } from "./driver.mjs";

register("./libraries.mjs", import.meta.url);

const [url, token, artifacts] = process.argv.slice(2);
const connection = new Connection({ url, token });
const { artifactsIn, draw, until } = await import("./screen.mjs");
const { gql } = await import("@apollo/client");
const { Environment, RecordSource, Store } = (await import("relay-runtime")).default;
const artifact = artifactsIn(artifacts);
const subscription = await artifact("timelineLiveSubscription");

const QUERIES = {
  apollo: { liveCursor: PAGE.replace(/liveCursor\(.*\)/, ""), id: PAGE.replace(/homeTimeline \{\s+id/, "homeTimeline {") },
  urql: { liveCursor: PAGE.replace(/liveCursor\(.*\)/, "") },
  relay: { liveCursor: await artifact("mistakesCursorQuery"), connection: await artifact("mistakesConnectionQuery") },
};

/** Render the hook of a library, and return the error that it throws, returns or writes to the console. */
async function thrown(Provider, properties, useList) {
  let error;
  console.error = (message) => (error ??= { message });
  function Screen() {
    const list = useList();
    error ??= list.error;
    return null;
  }
  const root = draw(Provider, properties, Screen, { onUncaughtError: (problem) => (error = problem) });
  await until(() => error);
  root.unmount();
  return error?.message;
}

const { Client, Provider: UrqlProvider, fetchExchange } = await import("urql");
const { cacheExchange } = await import("@urql/exchange-graphcache");
const { useHomeTimeline: useUrql } = await import("@fanline/client/urql-react");
const client = new Client({ url, fetchOptions: { headers: connection.headers }, exchanges: [cacheExchange({}), fetchExchange] });
const seen = { cache: { urql: await thrown(UrqlProvider, { value: client }, () => useUrql({ query: PAGE })) } };

const { ApolloClient, HttpLink, InMemoryCache } = await import("@apollo/client");
const { ApolloProvider } = await import("@apollo/client/react");
const { useHomeTimeline: useApollo, useTimeline } = await import("@fanline/client/apollo-react");
const { possibleTypes } = await import("@fanline/client/apollo");
const link = new HttpLink({ uri: url, headers: connection.headers });
const plain = new ApolloClient({ cache: new InMemoryCache({ possibleTypes }), link });
seen.cache.apollo = await thrown(ApolloProvider, { client: plain }, () => useApollo());
const { data } = await plain.query({ query: gql`{ viewer { user { id } } }` });
seen.type = await thrown(ApolloProvider, { client: plain }, () => useTimeline(data.viewer.user.id));

for (const [library, queries] of Object.entries(QUERIES)) {
  const { useHomeTimeline } = await import(`@fanline/client/${library}-react`);
  const { Provider, properties, documentOf } = await (await import(`./${library}.mjs`)).open(connection, { artifacts }, fail);
  seen[library] = {};
  for (const [missing, query] of Object.entries(queries)) {
    const options = { query: documentOf(query), subscription };
    seen[library][missing] = await thrown(Provider, properties, () => useHomeTimeline(options));
  }
  if (library !== "relay") continue;
  const environment = new Environment({ network: properties.environment.getNetwork(), store: new Store(new RecordSource()) });
  const options = { query: await artifact("timelinePageQuery"), subscription };
  seen[library].handler = await thrown(Provider, { environment }, () => useHomeTimeline(options));
}
console.log(JSON.stringify(seen));
process.exit();

function fail(problem) {
  throw problem;
}
