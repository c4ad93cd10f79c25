import { useEffect, useRef } from "react";
import { graphql, useLazyLoadQuery, useRelayEnvironment } from "react-relay";
import { fetchPages, PAGE } from "../live/fetchPages";
import { useAttempt } from "../ui/ErrorBoundary";
import { homePath } from "../ui/router";
import { Composer } from "./Composer";
import { replyConnection } from "./connections";
import { PostCard } from "./PostCard";
import { Replies } from "./Replies";
import type { PostScreenQuery } from "./__generated__/PostScreenQuery.graphql";

/** All pages of the replies, each with the posts above. */
const query = graphql`
  query PostScreenQuery($id: ID!, $count: Int!, $after: String) @raw_response_type {
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
      }
      ancestors {
        id
        author {
          id
        }
        ...PostCard_post
      }
      ...PostCard_post
      ...Replies_post @arguments(count: $count, after: $after)
    }
  }
`;

/** A post with the posts above it, the replies to it, and a form for a new reply. */
export function PostScreen({ id }: { id: string }) {
  const environment = useRelayEnvironment();
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network" } as const;
  const { viewer, post } = useLazyLoadQuery<PostScreenQuery>(query, { id, count: PAGE }, options);
  const ancestors = post?.ancestors ?? [];
  const main = useRef<HTMLDivElement>(null);
  const hasAncestors = ancestors.length > 0;

  useEffect(() => {
    if (hasAncestors) main.current?.scrollIntoView(); // the posts above can be long
  }, [hasAncestors]);

  if (!viewer) return null; // the session has just ended
  return (
    <>
      {post ? (
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
        </>
      ) : (
        <Gone />
      )}
      {/* When the post is deleted, the form stays, with what the user has written. */}
      <Composer viewer={viewer.user} replyToId={id} isClosed={!post} />
      {post && (
        <Replies
          post={post}
          viewerId={viewer.user.id}
          authors={[post, ...ancestors].map((each) => each?.author.id)}
          refetch={() =>
            fetchPages<PostScreenQuery>({
              environment,
              query,
              variables: { id },
              connection: replyConnection(id),
              pageInfo: ({ post }) => post?.replies?.pageInfo,
            })
          }
        />
      )}
    </>
  );
}

function Gone() {
  return (
    <div className="message">
      <title>Post not available · Fanline</title>
      <h1>This post is not available</h1>
      <p>It was deleted, or it never existed.</p>
      <a href={homePath}>Go to your home timeline</a>
    </div>
  );
}

function Unavailable() {
  return <p className="unavailable">This post is not available.</p>;
}
