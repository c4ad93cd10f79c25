// A page by the id that GraphQL Code Generator gave it, by fetch and by urql: node codegen.mjs URL TOKEN FOLDER
import { persistedExchange } from "@urql/exchange-persisted";
import { Client, fetchExchange } from "@urql/core";
import { createJiti } from "jiti";
import { headers, login as folder, url } from "./home.mjs";

const { PageDocument } = await createJiti(import.meta.url).import(`${folder}/gql/graphql.ts`);

/** Send an operation by the id that the client preset gave it. */
async function send(document, variables) {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ documentId: document.__meta__.hash, variables }),
  });
  return response.json();
}

const exchange = persistedExchange({
  enforcePersistedQueries: true, // never send the text
  enableForMutation: true,
  preferGetForPersistedQueries: "force", // GET for queries, which a CDN can cache
  generateHash: async (_, document) => document.__meta__.hash,
});

const client = new Client({ url, fetchOptions: { headers }, exchanges: [exchange, fetchExchange] });

const sent = await send(PageDocument, { first: 3 });
const { data, error } = await client.query(PageDocument, { first: 3 });
console.log(JSON.stringify({ id: PageDocument.__meta__.hash, fetch: sent, urql: { data, error: error?.message } }));
