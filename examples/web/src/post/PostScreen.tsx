import { useEffect, useRef } from "react";
import { fetchQuery, graphql, useLazyLoadQuery, useRelayEnvironment } from "react-relay";
import { useAttempt } from "../ui/ErrorBoundary";
import { homePath } from "../ui/router";
import { Composer } from "./Composer";
import { PostCard } from "./PostCard";
import { Replies } from "./Replies";
import type { PostScreenQuery } from "./__generated__/PostScreenQuery.graphql";

const query = graphql`
  query PostScreenQuery($id: ID!) {
    viewer {
      user {
        id
        ...Composer_viewer
      }
    }
    post(id: $id) {
      id
      author {
        id
        name
        timeline {
          liveCursor
        }
      }
      ancestors {
        id
        author {
          id
        }
        ...PostCard_post
      }
      ...PostCard_post
      ...Replies_post
    }
  }
`;

/** A post with the posts above it, the replies to it, and a form for another one. */
export function PostScreen({ id }: { id: string }) {
  const environment = useRelayEnvironment();
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network" } as const;
  const { viewer, post } = useLazyLoadQuery<PostScreenQuery>(query, { id }, options);
  const ancestors = post?.ancestors ?? [];
  const main = useRef<HTMLDivElement>(null);
  const hasAncestors = ancestors.length > 0;

  useEffect(() => {
    if (hasAncestors) main.current?.scrollIntoView(); // what is above can be long
  }, [hasAncestors]);

  async function refetch(): Promise<string | null | undefined> {
    const data = await fetchQuery<PostScreenQuery>(environment, query, { id }).toPromise();
    if (!data?.post) throw new Error("The server did not return the post.");
    return data.post.author.timeline.liveCursor;
  }

  if (!viewer) return null; // the session has just ended
  if (!post) {
    return (
      <div className="message">
        <title>Post not available · Fanline</title>
        <h1>This post is not available</h1>
        <p>It was deleted, or it never existed.</p>
        <a href={homePath}>Go to your home timeline</a>
      </div>
    );
  }
  return (
    <>
      <title>{`Post by ${post.author.name} · Fanline`}</title>
      <h1 className="visually-hidden">Post by {post.author.name}</h1>
      {hasAncestors && (
        <ol className="list thread" aria-label="Earlier posts">
          {ancestors.map((each, place) => (
            <li key={each?.id ?? place}>{each ? <PostCard post={each} isInThread /> : <Unavailable />}</li>
          ))}
        </ol>
      )}
      <div className="list thread-end" ref={main}>
        <PostCard post={post} isInThread={hasAncestors} />
      </div>
      <Composer viewer={viewer.user} replyToId={id} />
      <Replies
        post={post}
        viewerId={viewer.user.id}
        authors={[viewer.user, post.author, ...ancestors.map((each) => each?.author)].flatMap((user) => user?.id ?? [])}
        liveCursor={post.author.timeline.liveCursor}
        refetch={refetch}
      />
    </>
  );
}

function Unavailable() {
  return <p className="unavailable">This post is not available.</p>;
}
