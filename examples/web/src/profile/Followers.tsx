import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import { UserRow } from "./UserRow";
import type { FollowersNextQuery } from "./__generated__/FollowersNextQuery.graphql";
import type { FollowersQuery } from "./__generated__/FollowersQuery.graphql";
import type { Followers_user$key } from "./__generated__/Followers_user.graphql";

interface Props {
  userId: string;
  viewerId: string;
}

export function Followers({ userId, viewerId }: Props) {
  const { user } = useLazyLoadQuery<FollowersQuery>(
    graphql`
      query FollowersQuery($id: ID!) {
        user(by: { id: $id }) {
          ...Followers_user
        }
      }
    `,
    { id: userId },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  return user && <Users user={user} viewerId={viewerId} />;
}

function Users({ user, viewerId }: { user: Followers_user$key; viewerId: string }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<FollowersNextQuery, Followers_user$key>(
    graphql`
      fragment Followers_user on User
      @refetchable(queryName: "FollowersNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 30 }, after: { type: "String" }) {
        followers(first: $count, after: $after) @connection(key: "Followers_followers") {
          edges {
            node {
              id
              ...UserRow_user
            }
          }
        }
      }
    `,
    user,
  );
  return (
    <EndlessList
      name="followers"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>No followers yet.</p>}
    >
      {(data.followers?.edges ?? []).map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId} />
      ))}
    </EndlessList>
  );
}
