import { graphql } from "react-relay";
import { useLiveList } from "./useLiveList";
import type { Options, Stream } from "./useLiveList";
import type { useLiveThreadSubscription } from "./__generated__/useLiveThreadSubscription.graphql";

const THREAD: Stream<useLiveThreadSubscription> = {
  subscription: graphql`
    subscription useLiveThreadSubscription($id: ID!, $after: String) {
      thread(postId: $id, after: $after) {
        __typename
        cursor
        ... on ReplyAdded {
          postEdge {
            cursor
            node {
              __typename
              id
              author {
                id
              }
              ...PostCard_post
            }
          }
        }
        ... on PostChanged {
          post {
            id
            repliesCount
            repostsCount
            quotesCount
            likesCount
          }
        }
        ... on PostRemoved {
          postId
        }
        ... on AuthorHidden {
          userId
        }
      }
    }
  `,
  field: "thread",
  eventOf: ({ thread }) => thread,
};

/** Keep the direct replies to a post and its counts up to date. The event with new counts changes them in the store. */
export function useLiveThread(options: Options & { id: string }): void {
  useLiveList(THREAD, options);
}
