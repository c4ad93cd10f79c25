import { useRef } from "react";
import { ConnectionHandler, graphql, usePaginationFragment, useRelayEnvironment } from "react-relay";
import { fetchPages } from "../live/fetchPages";
import { useLiveTimeline } from "../live/useLiveTimeline";
import { shownEntries } from "../post/entries";
import { EntryCard } from "../post/EntryCard";
import { NewPosts } from "../post/NewPosts";
import { useHeld } from "../post/useHeld";
import { EndlessList } from "../ui/EndlessList";
import type { HomeFeedNextQuery } from "./__generated__/HomeFeedNextQuery.graphql";
import type { HomeFeedPagesQuery } from "./__generated__/HomeFeedPagesQuery.graphql";
import type { HomeFeed_viewer$key } from "./__generated__/HomeFeed_viewer.graphql";

const NEXT_PAGE = 50;

/** Fetches all pages when the list is fetched again. */
const query = graphql`
  query HomeFeedPagesQuery($count: Int!, $after: String) @raw_response_type {
    viewer {
      ...HomeFeed_viewer @arguments(count: $count, after: $after)
    }
  }
`;

interface Props {
  viewer: HomeFeed_viewer$key;
  isShown: boolean;
}

/** The home timeline. The connection in the store always has all entries, including those that are held back. */
export function HomeFeed({ viewer, isShown }: Props) {
  const environment = useRelayEnvironment();
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<HomeFeedNextQuery, HomeFeed_viewer$key>(
    graphql`
      fragment HomeFeed_viewer on Viewer
      @refetchable(queryName: "HomeFeedNextQuery")
      @argumentDefinitions(count: { type: "Int!" }, after: { type: "String" }) {
        user {
          id
        }
        homeTimeline {
          id
          liveCursor(first: $count, after: $after) # for liveCursorOf and watchPages
          entries(first: $count, after: $after) @connection(key: "HomeFeed_entries") {
            edges {
              cursor
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
    viewer,
  );
  if (!data.homeTimeline?.entries) throw new Error("The server did not return the home timeline.");
  const entries = data.homeTimeline.entries.edges.map(({ node }) => node);
  const { visible, count, hold, showAll } = useHeld(entries, shownEntries);
  const top = useRef<HTMLDivElement>(null);

  const connection = ConnectionHandler.getConnectionID(data.homeTimeline.id, "HomeFeed_entries");

  useLiveTimeline({
    connection,
    viewerId: data.user.id,
    hold,
    refetch: () =>
      fetchPages<HomeFeedPagesQuery>({
        environment,
        query,
        connection,
        pageInfo: (fetched) => fetched.viewer?.homeTimeline?.entries?.pageInfo,
      }),
  });

  function show() {
    showAll();
    scrollTo({ top: 0 });
    top.current?.focus({ preventScroll: true });
  }

  return (
    <section aria-label="Home timeline">
      <div ref={top} tabIndex={-1} />
      <NewPosts count={count} onShow={show} />
      <EndlessList
        name="posts"
        hasNext={hasNext && isShown}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(NEXT_PAGE, { onComplete })}
        empty={
          <>
            <h2>Your timeline is empty</h2>
            <p>Write your first post, or enter the @name of a user above and follow them.</p>
          </>
        }
      >
        {visible.map((entry) => (
          <EntryCard key={entry.id} entry={entry} />
        ))}
      </EndlessList>
    </section>
  );
}
