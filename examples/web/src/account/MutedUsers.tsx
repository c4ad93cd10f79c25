import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { MuteButton } from "../profile/MuteButton";
import { UserRow } from "../profile/UserRow";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { MutedUsersNextQuery } from "./__generated__/MutedUsersNextQuery.graphql";
import type { MutedUsersQuery } from "./__generated__/MutedUsersQuery.graphql";
import type { MutedUsers_viewer$key } from "./__generated__/MutedUsers_viewer.graphql";

/** The users whom the viewer mutes. A user who is no longer muted stays in the list that is on the screen. */
export function MutedUsers() {
  const { viewer } = useLazyLoadQuery<MutedUsersQuery>(
    graphql`
      query MutedUsersQuery {
        viewer {
          user {
            id
          }
          ...MutedUsers_viewer
        }
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!viewer) return null; // the session has just ended
  return (
    <>
      <title>Muted users · Fanline</title>
      <div className="heading">
        <h1>Muted users</h1>
      </div>
      <Users viewer={viewer} viewerId={viewer.user.id} />
    </>
  );
}

function Users({ viewer, viewerId }: { viewer: MutedUsers_viewer$key; viewerId: string }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<MutedUsersNextQuery, MutedUsers_viewer$key>(
    graphql`
      fragment MutedUsers_viewer on Viewer
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
    viewer,
  );
  if (!data.mutedUsers) throw new Error("The server did not return the muted users.");
  return (
    <EndlessList
      name="muted users"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>You have not muted anyone.</p>}
    >
      {data.mutedUsers.edges.map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId}>
          <MuteButton user={node} className="button button-quiet" />
        </UserRow>
      ))}
    </EndlessList>
  );
}
