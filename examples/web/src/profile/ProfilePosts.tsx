import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { shownEntries } from "../post/entries";
import { EntryCard } from "../post/EntryCard";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { ProfilePostsNextQuery } from "./__generated__/ProfilePostsNextQuery.graphql";
import type { ProfilePostsQuery } from "./__generated__/ProfilePostsQuery.graphql";
import type { ProfilePosts_user$key } from "./__generated__/ProfilePosts_user.graphql";

export function ProfilePosts({ userId }: { userId: string }) {
  const { user } = useLazyLoadQuery<ProfilePostsQuery>(
    graphql`
      query ProfilePostsQuery($id: ID!) {
        user(by: { id: $id }) {
          ...ProfilePosts_user
        }
      }
    `,
    { id: userId },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  return user && <Posts user={user} />;
}

function Posts({ user }: { user: ProfilePosts_user$key }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<
    ProfilePostsNextQuery,
    ProfilePosts_user$key
  >(
    graphql`
      fragment ProfilePosts_user on User
      @refetchable(queryName: "ProfilePostsNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, after: { type: "String" }) {
        timeline {
          entries(first: $count, after: $after) @connection(key: "ProfilePosts_entries") {
            edges {
              node {
                __typename
                id
                ... on Repost {
                  post {
                    id
                  }
                }
                ...EntryCard_entry
              }
            }
          }
        }
      }
    `,
    user,
  );
  const entries = (data.timeline.entries?.edges ?? []).map(({ node }) => node);
  return (
    <EndlessList
      name="posts"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(20, { onComplete })}
      empty={<p>No posts yet.</p>}
    >
      {shownEntries(entries).map((entry) => (
        <EntryCard key={entry.id} entry={entry} />
      ))}
    </EndlessList>
  );
}
