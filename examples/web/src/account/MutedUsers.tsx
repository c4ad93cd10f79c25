import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { MuteButton } from "../profile/MuteButton";
import { UserRow } from "../profile/UserRow";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { MutedUsersNextQuery } from "./__generated__/MutedUsersNextQuery.graphql";
import type { MutedUsersQuery } from "./__generated__/MutedUsersQuery.graphql";
import type { MutedUsers_query$key } from "./__generated__/MutedUsers_query.graphql";

/** The users whom the viewer mutes. A user who is no longer muted stays in the list that is on the screen. */
export function MutedUsers() {
  const data = useLazyLoadQuery<MutedUsersQuery>(
    graphql`
      query MutedUsersQuery {
        viewer {
          id
        }
        ...MutedUsers_query
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!data.viewer) return null; // the session has just ended
  return (
    <>
      <title>Muted users · Fanline</title>
      <div className="heading">
        <h1>Muted users</h1>
      </div>
      <Users query={data} viewerId={data.viewer.id} />
    </>
  );
}

function Users({ query, viewerId }: { query: MutedUsers_query$key; viewerId: string }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<MutedUsersNextQuery, MutedUsers_query$key>(
    graphql`
      fragment MutedUsers_query on Query
      @refetchable(queryName: "MutedUsersNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 30 }, after: { type: "String" }) {
        mutedUsers(first: $count, after: $after) @connection(key: "MutedUsers_mutedUsers") {
          edges {
            node {
              id
              ...UserRow_user
              ...MuteButton_user
            }
          }
        }
      }
    `,
    query,
  );
  return (
    <EndlessList
      name="muted users"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>You mute nobody.</p>}
    >
      {(data.mutedUsers?.edges ?? []).map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId}>
          <MuteButton user={node} className="button button-quiet" />
        </UserRow>
      ))}
    </EndlessList>
  );
}
