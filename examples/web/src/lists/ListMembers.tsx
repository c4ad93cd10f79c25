import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { UserRow } from "../profile/UserRow";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import { MemberButton } from "./MemberButton";
import type { ListMembersNextQuery } from "./__generated__/ListMembersNextQuery.graphql";
import type { ListMembersQuery } from "./__generated__/ListMembersQuery.graphql";
import type { ListMembers_list$key } from "./__generated__/ListMembers_list.graphql";

interface Props {
  listId: string;
  viewerId: string;
}

/** The members of a list. A user who is removed stays on the screen, and can be added again. */
export function ListMembers({ listId, viewerId }: Props) {
  const { node } = useLazyLoadQuery<ListMembersQuery>(
    graphql`
      query ListMembersQuery($id: ID!) {
        node(id: $id) {
          ... on UserList {
            id
            name
            membersCount # the one of the heading can be older
            ...ListMembers_list @alias(as: "list")
          }
        }
      }
    `,
    { id: listId },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  if (!node?.list) return null; // the list was deleted in another tab
  return <Members list={node.list} listName={node.name ?? ""} listId={listId} viewerId={viewerId} />;
}

function Members({ list, listName, listId, viewerId }: { list: ListMembers_list$key; listName: string } & Props) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<ListMembersNextQuery, ListMembers_list$key>(
    graphql`
      fragment ListMembers_list on UserList
      @refetchable(queryName: "ListMembersNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 30 }, after: { type: "String" }) {
        members(first: $count, after: $after) @connection(key: "ListMembers_members") {
          edges {
            node {
              id
              login
              ...UserRow_user
            }
          }
        }
      }
    `,
    list,
  );
  return (
    <EndlessList
      name="members"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>No members yet. To add a user to this list, open the user’s profile.</p>}
    >
      {(data.members?.edges ?? []).map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId}>
          <MemberButton listId={listId} userId={node.id} login={node.login} listName={listName} isMember />
        </UserRow>
      ))}
    </EndlessList>
  );
}
