import { liveCursorOf } from "@fanline/client/relay";
import { fetchQuery, graphql, useLazyLoadQuery, usePaginationFragment, useRelayEnvironment } from "react-relay";
import { usePostEvents } from "../live/usePostEvents";
import { NewPosts } from "../post/NewPosts";
import { PostCard } from "../post/PostCard";
import { useHeld } from "../post/useHeld";
import { EndlessList } from "../ui/EndlessList";
import { useAttempt } from "../ui/ErrorBoundary";
import { canNameUsers, FoundUsers } from "./FoundUsers";
import type { SearchScreenNextQuery } from "./__generated__/SearchScreenNextQuery.graphql";
import type { SearchScreenQuery } from "./__generated__/SearchScreenQuery.graphql";
import type { SearchScreen_query$key } from "./__generated__/SearchScreen_query.graphql";

const query = graphql`
  query SearchScreenQuery($filter: PostFilter!, $text: String!, $withUsers: Boolean!) {
    viewer {
      user {
        id
      }
    }
    searchUsers(text: $text, first: 3) @include(if: $withUsers) {
      ...FoundUsers_users
    }
    ...SearchScreen_query @arguments(filter: $filter)
  }
`;

/** With this, a query fails with the server's reason if the text contains no word. */
const networkCacheConfig = { force: true, metadata: { requires: "searchPosts" } };

/**
 * The users whose names match a text, and the posts that contain all its words: first posts from the archive, then new
 * posts from a stream that begins at the cursor of the search.
 */
export function SearchScreen({ text }: { text: string }) {
  const environment = useRelayEnvironment();
  const variables = { filter: { keywords: [text] }, text, withUsers: canNameUsers(text) };
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network", networkCacheConfig } as const;
  const data = useLazyLoadQuery<SearchScreenQuery>(query, variables, options);
  if (!data.viewer) return null; // the session has just ended
  const viewerId = data.viewer.user.id;

  return (
    <>
      <title>{`${text} · Search · Fanline`}</title>
      <div className="heading">
        <h1>
          Results for <bdi>{text}</bdi>
        </h1>
      </div>
      {data.searchUsers && <FoundUsers users={data.searchUsers} viewerId={viewerId} />}
      <Found
        found={data}
        keywords={variables.filter.keywords}
        viewerId={viewerId}
        fetchAgain={() => fetchQuery<SearchScreenQuery>(environment, query, variables).toPromise()}
      />
    </>
  );
}

interface Props {
  found: SearchScreen_query$key;
  keywords: readonly string[];
  viewerId: string;
  /** Fetch the first page from the network. */
  fetchAgain: () => Promise<unknown>;
}

function Found({ found, keywords, viewerId, fetchAgain }: Props) {
  const environment = useRelayEnvironment();
  const { data, loadNext, hasNext, isLoadingNext } = usePaginationFragment<
    SearchScreenNextQuery,
    SearchScreen_query$key
  >(
    graphql`
      fragment SearchScreen_query on Query
      @refetchable(queryName: "SearchScreenNextQuery")
      @argumentDefinitions(
        filter: { type: "PostFilter!" }
        count: { type: "Int", defaultValue: 20 }
        after: { type: "String" }
      ) {
        searchPosts(filter: $filter) {
          liveCursor(first: $count, after: $after)
          posts(first: $count, after: $after) @connection(key: "SearchScreen_posts") {
            __id
            edges {
              cursor
              node {
                id
                ...PostCard_post
              }
            }
          }
        }
      }
    `,
    found,
  );
  if (!data.searchPosts?.posts) throw new Error("The server did not return the search results.");
  const { liveCursor } = data.searchPosts;
  const { __id: connection, edges } = data.searchPosts.posts;
  const { visible, count, hold, showAll } = useHeld(edges.map(({ node }) => node));

  usePostEvents({
    connection,
    filter: { keywords },
    liveCursor,
    async refetch() {
      await fetchAgain();
      return liveCursorOf(environment, connection);
    },
    onPost({ id, author }) {
      if (author.id !== viewerId) hold(id); // the viewer's own appear at once
    },
  });

  return (
    <section aria-label="Search results">
      <NewPosts count={count} onShow={showAll} />
      <EndlessList
        name="posts"
        hasNext={hasNext}
        isLoading={isLoadingNext}
        loadNext={(onComplete) => loadNext(20, { onComplete })}
        empty={<p>No posts yet. New ones appear here.</p>}
      >
        {visible.map((post) => (
          <PostCard key={post.id} post={post} />
        ))}
      </EndlessList>
    </section>
  );
}
