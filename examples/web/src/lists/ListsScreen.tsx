import { graphql, useLazyLoadQuery } from "react-relay";
import { useAttempt } from "../ui/ErrorBoundary";
import { listPath } from "../ui/router";
import { NewList } from "./NewList";
import type { ListsScreenQuery } from "./__generated__/ListsScreenQuery.graphql";

/** The viewer's lists, and a form for a new one. */
export function ListsScreen() {
  const { viewer } = useLazyLoadQuery<ListsScreenQuery>(
    graphql`
      query ListsScreenQuery {
        viewer {
          lists {
            id
            name
            membersCount
          }
        }
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!viewer) return null; // the session has just ended
  const { lists } = viewer;
  if (!lists) throw new Error("The server did not return the lists.");
  return (
    <>
      <title>Your lists · Fanline</title>
      <div className="heading">
        <h1>Your lists</h1>
        <p className="quiet">Only you can see them.</p>
      </div>
      <NewList />
      {lists.length === 0 ? (
        <div className="message">
          <p>You have no lists. A list shows the posts of its members, whether you follow them or not.</p>
        </div>
      ) : (
        <ul className="list" aria-label="Lists">
          {lists.map(({ id, name, membersCount }) => (
            <li key={id}>
              <a className="list-row" href={listPath(id)}>
                <strong>
                  <bdi>{name}</bdi>
                </strong>
                <span className="quiet">{`${String(membersCount)} ${membersCount === 1 ? "member" : "members"}`}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
