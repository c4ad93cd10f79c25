import { useHomeTimeline } from "@fanline/client/relay-react";
import { graphql, useFragment } from "react-relay";
import type { Home_entry$key } from "./__generated__/Home_entry.graphql";
import type { HomeQuery } from "./__generated__/HomeQuery.graphql";

export function Home() {
  const { entries, loading, error, retry, hasMore, loadMore, isLoadingMore } = useHomeTimeline<HomeQuery>(documents);
  if (loading) return <p>Loading …</p>;
  return (
    <main>
      {error && <p role="alert">{error.message} <button onClick={retry}>Try again</button></p>}
      <ul>{entries.map((entry) => <Entry key={entry.id} entry={entry} />)}</ul>
      {hasMore && <button disabled={isLoadingMore} onClick={loadMore}>More</button>}
    </main>
  );
}

function Entry({ entry }: { entry: Home_entry$key }) {
  const { author, text, post } = useFragment(ENTRY, entry);
  const shown = post === undefined ? { author, text } : post;
  return <li>{post !== undefined && `${author.name} reposted `}{shown?.author.name}: {shown?.text}</li>;
}

const ENTRY = graphql`
  fragment Home_entry on TimelineItem {
    author { name }
    ... on Post { text }
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
