import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { ApolloProvider } from "@apollo/client/react";
import { relayStylePagination } from "@apollo/client/utilities";
import { possibleTypes, typePolicies } from "@fanline/client/apollo";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Home } from "./Home";
import { headers, socket, url } from "./socket";

const client = new ApolloClient({
  cache: new InMemoryCache({ possibleTypes, typePolicies: typePolicies(relayStylePagination()) }),
  link: ApolloLink.split(
    ({ operationType }) => operationType === "subscription",
    new GraphQLWsLink(socket),
    new HttpLink({ uri: url, headers }),
  ),
});

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <ApolloProvider client={client}>
      <Home />
    </ApolloProvider>
  </StrictMode>,
);
