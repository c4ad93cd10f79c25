import { useState } from "react";
import { fetchQuery, graphql, useLazyLoadQuery, usePaginationFragment, useRelayEnvironment } from "react-relay";
import { shownEntries } from "../post/entries";
import { EntryCard } from "../post/EntryCard";
import { useProblem } from "../post/useProblem";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { ListPostsNextQuery } from "./__generated__/ListPostsNextQuery.graphql";
import type { ListPostsQuery } from "./__generated__/ListPostsQuery.graphql";
import type { ListPosts_timeline$key } from "./__generated__/ListPosts_timeline.graphql";

const query = graphql`
  query ListPostsQuery($id: ID!) {
    node(id: $id) {
      ... on UserList {
        timeline {
          id
          ...ListPosts_timeline
        }
      }
    }
  }
`;

/** The timeline of a list. Lists have no live stream: a button fetches the first page again. */
export function ListPosts({ listId }: { listId: string }) {
  const environment = useRelayEnvironment();
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network" } as const;
  const { node } = useLazyLoadQuery<ListPostsQuery>(query, { id: listId }, options);
  const { onError } = useProblem();
  const [isFetching, setIsFetching] = useState(false);

  async function refresh() {
    setIsFetching(true);
    try {
      await fetchQuery<ListPostsQuery>(environment, query, { id: listId }, { fetchPolicy: "network-only" }).toPromise();
    } catch (problem) {
      onError(problem as Error);
    } finally {
      setIsFetching(false);
    }
  }

  if (!node?.timeline) return null; // the list was deleted in another tab
  return (
    <section aria-label="Posts of the list">
      <button className="button button-quiet refresh" aria-disabled={isFetching} onClick={() => void refresh()}>
        Show new posts
      </button>
      <Posts timeline={node.timeline} />
    </section>
  );
}

function Posts({ timeline }: { timeline: ListPosts_timeline$key }) {
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<ListPostsNextQuery, ListPosts_timeline$key>(
    graphql`
      fragment ListPosts_timeline on Timeline
      @refetchable(queryName: "ListPostsNextQuery")
      @argumentDefinitions(count: { type: "Int", defaultValue: 20 }, after: { type: "String" }) {
        entries(first: $count, after: $after) @connection(key: "ListPosts_entries") {
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
    `,
    timeline,
  );
  const entries = (data.entries?.edges ?? []).map(({ node }) => node);
  return (
    <EndlessList
      name="posts"
      hasNext={hasNext}
      isLoading={isLoadingNext}
      loadNext={(onComplete) => loadNext(20, { onComplete })}
      empty={<p>No posts yet. Open the profile of a user to add the user to this list.</p>}
    >
      {shownEntries(entries).map((entry) => (
        <EntryCard key={entry.id} entry={entry} />
      ))}
    </EndlessList>
  );
}
