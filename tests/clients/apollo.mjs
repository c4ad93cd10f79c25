// A home timeline with Apollo Client: node apollo.mjs URL TOKEN
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { possibleTypes } from "@fanline/client/apollo";
import { LIVE, PAGE, fail, headers, open, take, url } from "./home.mjs";
import { socket } from "./socket.mjs";

const client = new ApolloClient({
  cache: new InMemoryCache({ possibleTypes }),
  link: ApolloLink.split(
    ({ operationType }) => operationType === "subscription",
    new GraphQLWsLink(socket),
    new HttpLink({ uri: url, headers }),
  ),
});

const page = await client.query({ query: gql(PAGE) });
client
  .subscribe({ query: gql(LIVE), variables: { after: open(page.data) } })
  .subscribe(({ data, error }) => (error ? fail(error) : take(data.homeTimeline)));
