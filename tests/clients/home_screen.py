"""A home screen in React, as in docs/client-kit.md."""

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
