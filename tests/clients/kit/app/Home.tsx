import { useHomeTimeline } from "@fanline/client/apollo-react";

export function Home() {
  const { entries, loading, error, retry, hasMore, loadMore, isLoadingMore } = useHomeTimeline();
  if (loading) return <p>Loading …</p>;
  return (
    <main>
      {error && <p role="alert">{error.message} <button onClick={retry}>Try again</button></p>}
      <ul>
        {entries.map((entry) => {
          const post = entry.__typename === "Post" ? entry : entry.post;
          return <li key={entry.id}>{post !== entry && `${entry.author.name} reposted `}{post?.author.name}: {post?.text}</li>;
        })}
      </ul>
      {hasMore && <button disabled={isLoadingMore} onClick={loadMore}>More</button>}
    </main>
  );
}
