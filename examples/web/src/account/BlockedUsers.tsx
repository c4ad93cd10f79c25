import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { BlockButton } from "../profile/BlockButton";
import { UserRow } from "../profile/UserRow";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { BlockedUsersNextQuery } from "./__generated__/BlockedUsersNextQuery.graphql";
import type { BlockedUsersQuery } from "./__generated__/BlockedUsersQuery.graphql";
import type { BlockedUsers_viewer$key } from "./__generated__/BlockedUsers_viewer.graphql";

/** The users whom the viewer blocks. A user who is no longer blocked stays in the list that is on the screen. */
export function BlockedUsers() {
  const { viewer } = useLazyLoadQuery<BlockedUsersQuery>(
    graphql`
      query BlockedUsersQuery {
        viewer {
          user {
            id
          }
          ...BlockedUsers_viewer
        }
      }
    `,
    {},
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!viewer) return null; // the session has just ended
  return (
    <>
      <title>Blocked users · Fanline</title>
      <div className="heading">
        <h1>Blocked users</h1>
      </div>
      <Users viewer={viewer} viewerId={viewer.user.id} />
    </>
  );
}

function Users({ viewer, viewerId }: { viewer: BlockedUsers_viewer$key; viewerId: string }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<BlockedUsersNextQuery, BlockedUsers_viewer$key>(
    graphql`
      fragment BlockedUsers_viewer on Viewer
      @refetchable(queryName: "BlockedUsersNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 30 }, after: { type: "String" }) {
        blockedUsers(first: $count, after: $after) @connection(key: "BlockedUsers_blockedUsers") {
          edges {
            node {
              id
              ...UserRow_user
              ...BlockButton_user
            }
          }
        }
      }
    `,
    viewer,
  );
  if (!data.blockedUsers) throw new Error("The server did not return the blocked users.");
  return (
    <EndlessList
      name="blocked users"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>You have not blocked anyone.</p>}
    >
      {data.blockedUsers.edges.map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId}>
          <BlockButton user={node} className="button button-quiet" />
        </UserRow>
      ))}
    </EndlessList>
  );
}
