// A page by Apollo's extension `persistedQuery`: node apollo-persisted.mjs URL TOKEN [MANIFEST]
import { readFile } from "node:fs/promises";
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { PersistedQueryLink } from "@apollo/client/link/persisted-queries";
import { generatePersistedQueryIdsFromManifest } from "@apollo/persisted-query-lists";
import { headers, login as manifest, url } from "./home.mjs";

async function sha256(text) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return Buffer.from(digest).toString("hex");
}

const byHash = () => new PersistedQueryLink({ sha256, useGETForHashedQueries: true });

const byManifest = () =>
  new PersistedQueryLink(
    generatePersistedQueryIdsFromManifest({
      loadManifest: async () => JSON.parse(await readFile(manifest, "utf8")),
    }),
  );

const sent = [];
const watched = async (address, init) => {
  const response = await fetch(address, init);
  const body = init.method === "GET" ? Object.fromEntries(new URL(address).searchParams) : JSON.parse(init.body);
  const codes = ((await response.clone().json()).errors ?? []).map((error) => error.extensions.code);
  sent.push({ method: init.method, status: response.status, text: "query" in body, codes });
  return response;
};

const client = new ApolloClient({
  cache: new InMemoryCache(),
  link: ApolloLink.from([manifest ? byManifest() : byHash(), new HttpLink({ uri: url, headers, fetch: watched })]),
});

const PAGE = gql(await readFile(new URL("./persisted/page.graphql", import.meta.url), "utf8"));
const UNLISTED = gql`query Unlisted { viewer { user { login } } }`;
const results = [];
for (const query of [PAGE, UNLISTED, PAGE]) {
  const variables = query === PAGE ? { first: 3 } : {};
  const ask = client.query({ query, variables, fetchPolicy: "no-cache" });
  results.push(await ask.then(({ data }) => ({ data }), (error) => ({ error: error.message })));
}
console.log(JSON.stringify({ sent, results }));
