// Prints the events of one user, with the iterator of graphql-ws: node events.mjs URL TOKEN LOGIN
import { ask, fail, login, show } from "./home.mjs";
import { socket } from "./socket.mjs";

const WHO = `query Who($login: String!) { user(by: { login: $login }) { id } }`;
const EVENTS = `subscription Events($filter: EventFilter!, $after: String) {
  events(filter: $filter, after: $after) { __typename cursor ... on PostAdded { post { __typename id text } } }
}`;

const { user } = await ask(WHO, { login });
const request = { query: EVENTS, variables: { filter: { users: [user.id] } } };

try {
  for await (const { data, errors } of socket.iterate(request)) {
    if (errors) fail(errors);
    if (data.events.__typename === "PostAdded") show(data.events.post);
  }
  fail("The stream has ended.");
} catch (problem) {
  fail(problem);
}
