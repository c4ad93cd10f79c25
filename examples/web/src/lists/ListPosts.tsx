import { ConnectionHandler, graphql, useLazyLoadQuery, usePaginationFragment, useRelayEnvironment } from "react-relay";
import { fetchPages, PAGE } from "../live/fetchPages";
import { useLiveTimeline } from "../live/useLiveTimeline";
import { shownEntries } from "../post/entries";
import { EntryCard } from "../post/EntryCard";
import { NewPosts } from "../post/NewPosts";
import { useHeld } from "../post/useHeld";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import type { ListPostsNextQuery } from "./__generated__/ListPostsNextQuery.graphql";
import type { ListPostsQuery } from "./__generated__/ListPostsQuery.graphql";
import type { ListPosts_timeline$key } from "./__generated__/ListPosts_timeline.graphql";

/** All pages, each with the details of the list that the screen shows. */
const query = graphql`
  query ListPostsQuery($id: ID!, $count: Int!, $after: String) @raw_response_type {
    node(id: $id) {
      ... on UserList {
        name
        membersCount
        timeline {
          ...ListPosts_timeline @arguments(count: $count, after: $after)
        }
      }
    }
  }
`;

interface Props {
  listId: string;
  viewerId: string;
}

/** The timeline of a list. When the members change, it is fetched again. */
export function ListPosts({ listId, viewerId }: Props) {
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network" } as const;
  const { node } = useLazyLoadQuery<ListPostsQuery>(query, { id: listId, count: PAGE }, options);
  if (!node?.timeline) return null; // the list was deleted in another tab
  return <Posts timeline={node.timeline} listId={listId} viewerId={viewerId} />;
}

function Posts({ timeline, listId, viewerId }: { timeline: ListPosts_timeline$key } & Props) {
  const environment = useRelayEnvironment();
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<ListPostsNextQuery, ListPosts_timeline$key>(
    graphql`
      fragment ListPosts_timeline on Timeline
      @refetchable(queryName: "ListPostsNextQuery")
      @argumentDefinitions(count: { type: "Int!" }, after: { type: "String" }) {
        id
        liveCursor(first: $count, after: $after) # for liveCursorOf and watchPages
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
  const { visible, count, hold, showAll } = useHeld(entries, shownEntries);
  const connection = ConnectionHandler.getConnectionID(data.id, "ListPosts_entries");

  useLiveTimeline({
    id: data.id,
    connection,
    viewerId,
    hold,
    refetch: () =>
      fetchPages<ListPostsQuery>({
        environment,
        query,
        variables: { id: listId },
        connection,
        pageInfo: ({ node }) => (node && "timeline" in node ? node.timeline.entries?.pageInfo : undefined),
      }),
  });

  return (
    <section aria-label="Posts of the list">
      <NewPosts count={count} onShow={showAll} />
      <EndlessList
        name="posts"
        hasNext={hasNext}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(PAGE, { onComplete })}
        empty={<p>No posts yet. To add a user to this list, open the user’s profile.</p>}
      >
        {visible.map((entry) => (
          <EntryCard key={entry.id} entry={entry} />
        ))}
      </EndlessList>
    </section>
  );
}
