import { addEdge } from "@fanline/client/relay";
import { useEffect, useEffectEvent, useState } from "react";
import { commitLocalUpdate, fetchQuery, graphql, useRelayEnvironment } from "react-relay";
import type { Environment, RecordProxy, RecordSourceProxy } from "relay-runtime";
import { replyConnection } from "./connections";
import type { useNewRepliesCountQuery } from "./__generated__/useNewRepliesCountQuery.graphql";
import type { useNewRepliesQuery } from "./__generated__/useNewRepliesQuery.graphql";

const PERIOD = 5_000;
const PAGE = 20;

const countQuery = graphql`
  query useNewRepliesCountQuery($id: ID!) {
    post(id: $id) {
      id
      repliesCount
    }
  }
`;

/** The newest replies, outside of the connection: the list keeps its other pages. */
const pageQuery = graphql`
  query useNewRepliesQuery($id: ID!, $count: Int!) {
    post(id: $id) {
      id
      replies(first: $count) {
        edges {
          cursor
          node {
            id
            author {
              id
            }
            ...PostCard_post
          }
        }
        pageInfo {
          hasNextPage
        }
      }
    }
  }
`;

type Reply = NonNullable<
  NonNullable<useNewRepliesQuery["response"]["post"]>["replies"]
>["edges"][number]["node"];

interface Options {
  postId: string;
  /** How many replies the post has. */
  count: number;
  /** Fetch the first page of the list again. Called if more replies are missing than one page has. */
  refetch: () => Promise<unknown>;
  /** Called with each reply that is added. */
  onReply: (reply: Reply) => void;
}

/**
 * Add the replies of all users to the list of a post that is on the screen.
 *
 * The server has no stream of the replies to a post: its filters select by author or by words. So the number of replies
 * is read every few seconds while the page is visible, and the newest ones when it has changed.
 */
export function useNewReplies({ postId, count, refetch, onReply }: Options): void {
  const environment = useRelayEnvironment();
  const [first] = useState(count);
  const added = useEffectEvent(onReply);
  const fetchAgain = useEffectEvent(refetch);

  useEffect(() => {
    let known = first;
    let isOver = false;
    let timer = setTimeout(() => void look(), PERIOD);

    async function look(): Promise<void> {
      try {
        if (document.visibilityState === "visible") await update();
      } catch {
        // The next attempt may succeed.
      }
      if (!isOver) timer = setTimeout(() => void look(), PERIOD);
    }

    async function update(): Promise<void> {
      const data = await fetchQuery<useNewRepliesCountQuery>(environment, countQuery, { id: postId }).toPromise();
      const now = data?.post?.repliesCount;
      if (isOver || now === undefined || now === known) return;
      const replies = await newReplies(environment, postId);
      if (replies === undefined) await fetchAgain();
      else replies.forEach((reply) => added(reply));
      known = now;
    }

    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [environment, postId, first]);
}

/** Fetch the newest replies, add those that the list lacks, and return them; undefined if there may be even more. */
async function newReplies(environment: Environment, postId: string): Promise<readonly Reply[] | undefined> {
  const variables = { id: postId, count: PAGE };
  const data = await fetchQuery<useNewRepliesQuery>(environment, pageQuery, variables).toPromise();
  const { edges = [], pageInfo } = data?.post?.replies ?? {};
  let added: readonly Reply[] | undefined;
  commitLocalUpdate(environment, (store) => {
    const page = store.get(postId)?.getLinkedRecord("replies", { first: PAGE }) as RecordProxy | null | undefined;
    const fetched = page?.getLinkedRecords("edges") ?? [];
    const known = knownIds(store, postId);
    if (pageInfo?.hasNextPage && !edges.some(({ node }) => known.has(node.id))) return;
    const ids = new Set(fetched.filter((edge) => addEdge(store, replyConnection(postId), edge)).map(idOf));
    added = edges.map(({ node }) => node).filter(({ id }) => ids.has(id));
  });
  return added;
}

/** Return the ids of the posts in the list. */
function knownIds(store: RecordSourceProxy, postId: string): Set<string> {
  const edges = store.get(replyConnection(postId))?.getLinkedRecords("edges") ?? [];
  return new Set(edges.map(idOf));
}

function idOf(edge: RecordProxy): string {
  return edge.getLinkedRecord("node").getDataID();
}
