import { graphql, useLazyLoadQuery, usePaginationFragment } from "react-relay";
import { PAGE } from "../live/fetchPages";
import { shownEntries } from "../post/entries";
import { EntryCard } from "../post/EntryCard";
import { NewPosts } from "../post/NewPosts";
import { useHeld } from "../post/useHeld";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import { query, useLiveProfile } from "./useLiveProfile";
import type { ProfileProps } from "./useLiveProfile";
import type { ProfilePostsNextQuery } from "./__generated__/ProfilePostsNextQuery.graphql";
import type { ProfilePosts_user$key } from "./__generated__/ProfilePosts_user.graphql";
import type { useLiveProfileQuery } from "./__generated__/useLiveProfileQuery.graphql";

export function ProfilePosts(props: ProfileProps) {
  const { user } = useLazyLoadQuery<useLiveProfileQuery>(
    query,
    { login: props.login, count: PAGE },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  return user && <Posts user={user} {...props} />;
}

function Posts({ user, ...props }: { user: ProfilePosts_user$key } & ProfileProps) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<
    ProfilePostsNextQuery,
    ProfilePosts_user$key
  >(
    graphql`
      fragment ProfilePosts_user on User
      @refetchable(queryName: "ProfilePostsNextQuery")
      @argumentDefinitions(count: { type: "Int!" }, after: { type: "String" }) {
        timeline {
          liveCursor(first: $count, after: $after) # for liveCursorOf and watchPages
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
  const { visible, count, hold, showAll } = useHeld(entries, shownEntries);
  useLiveProfile({ ...props, hold });

  return (
    <section aria-label="Posts of the user">
      <NewPosts count={count} onShow={showAll} />
      <EndlessList
        name="posts"
        hasNext={hasNext}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(PAGE, { onComplete })}
        empty={<p>No posts yet.</p>}
      >
        {visible.map((entry) => (
          <EntryCard key={entry.id} entry={entry} />
        ))}
      </EndlessList>
    </section>
  );
}
