// Prints the events of one user, with graphql-ws: node events.mjs URL TOKEN LOGIN
import { ask, fail, login, show } from "./home.mjs";
import { socket } from "./socket.mjs";

const WHO = `query Who($login: String!) { user(by: { login: $login }) { id } }`;
const EVENTS = `subscription Events($filter: EventFilter!, $after: String) {
  events(filter: $filter, after: $after) { __typename cursor ... on PostPublished { post { id text } } }
}`;

const { user } = await ask(WHO, { login });
socket.subscribe(
  { query: EVENTS, variables: { filter: { users: [user.id] } } },
  {
    next({ data, errors }) {
      if (errors) fail(errors);
      if (data.events.__typename === "PostPublished") show(data.events.post);
    },
    error: fail,
    complete: () => fail("The stream has ended."),
  },
);
