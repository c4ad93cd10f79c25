import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import { UserRow } from "./UserRow";
import type { FollowingNextQuery } from "./__generated__/FollowingNextQuery.graphql";
import type { FollowingQuery } from "./__generated__/FollowingQuery.graphql";
import type { Following_user$key } from "./__generated__/Following_user.graphql";

interface Props {
  userId: string;
  viewerId: string;
}

export function Following({ userId, viewerId }: Props) {
  const { user } = useLazyLoadQuery<FollowingQuery>(
    graphql`
      query FollowingQuery($id: ID!) {
        user(by: { id: $id }) {
          ...Following_user
        }
      }
    `,
    { id: userId },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  return user && <Users user={user} viewerId={viewerId} isViewer={userId === viewerId} />;
}

interface UsersProps {
  user: Following_user$key;
  viewerId: string;
  isViewer: boolean;
}

function Users({ user, viewerId, isViewer }: UsersProps) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<FollowingNextQuery, Following_user$key>(
    graphql`
      fragment Following_user on User
      @refetchable(queryName: "FollowingNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 30 }, after: { type: "String" }) {
        following(first: $count, after: $after) @connection(key: "Following_following") {
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
      name="following"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(30, { onComplete })}
      empty={<p>{isViewer ? "You are not following anyone yet." : "This user is not following anyone yet."}</p>}
    >
      {(data.following?.edges ?? []).map(({ node }) => (
        <UserRow key={node.id} user={node} viewerId={viewerId} />
      ))}
    </EndlessList>
  );
}
