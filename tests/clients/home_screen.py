"""Home screens in React, as in docs/client-kit.md."""

HOME_SCREEN = """
import { useHomeTimeline } from "@fanline/client/apollo-react";

export function Home() {
  const { entries, loading, error, hasMore, loadMore, isLoadingMore, refetch } = useHomeTimeline();
  if (loading) return <p>Loading …</p>;
  return (
    <main>
      {error && <p role="alert">{error.message} <button onClick={refetch}>Try again</button></p>}
      <ul>
        {entries.map((entry) => {
          const post = entry.__typename === "Post" ? entry : entry.post;
          return <li key={entry.id}>{post?.author.name}: {post?.text}</li>;
        })}
      </ul>
      {hasMore && <button disabled={isLoadingMore} onClick={loadMore}>More</button>}
    </main>
  );
}
"""

RELAY_HOME_SCREEN = """
import { useHomeTimeline } from "@fanline/client/relay-react";
import { graphql, useFragment } from "react-relay";

export function Home() {
  const { entries, loading, error, hasMore, loadMore, isLoadingMore, refetch } = useHomeTimeline(documents);
  if (loading) return <p>Loading …</p>;
  return (
    <main>
      {error && <p role="alert">{error.message} <button onClick={refetch}>Try again</button></p>}
      <ul>{entries.map((entry) => <Entry key={entry.id} entry={entry} />)}</ul>
      {hasMore && <button disabled={isLoadingMore} onClick={loadMore}>More</button>}
    </main>
  );
}

function Entry({ entry }) {
  const { post, ...shown } = useFragment(ENTRY, entry);
  const { author, text } = post ?? shown;
  return <li>{author?.name}: {text}</li>;
}

const ENTRY = graphql`
  fragment Home_entry on TimelineItem {
    ... on Post { text author { name } }
    ... on Repost { post { text author { name } } }
  }
`;

graphql`
  fragment Home_node on TimelineItem {
    __typename
    id
    author { id }
    ... on Repost { post { id author { id } } }
    ...Home_entry
  }
`;

const documents = {
  query: graphql`
    query HomeQuery($first: Int!, $after: String) {
      viewer {
        homeTimeline {
          id
          liveCursor(first: $first, after: $after)
          entries(first: $first, after: $after) @connection(key: "Home_entries") {
            __id
            edges { node { ...Home_node @relay(mask: false) } }
          }
        }
      }
    }
  `,
  subscription: graphql`
    subscription HomeSubscription($after: String) {
      homeTimeline(after: $after) {
        __typename
        cursor
        ... on PostAdded { timelineEdge { cursor node { ...Home_node @relay(mask: false) } } }
        ... on RepostAdded { timelineEdge { cursor node { ...Home_node @relay(mask: false) } } }
        ... on PostRemoved { postId }
        ... on RepostRemoved { repostId }
        ... on AuthorRemoved { userId }
        ... on AuthorHidden { userId }
      }
    }
  `,
};
"""
