import { failure, pause } from "@fanline/client";
import { useEffect } from "react";
import { graphql, requestSubscription, useRelayEnvironment } from "react-relay";
import { profilePath } from "../ui/router";
import { useToast } from "../ui/Toasts";
import type { useNewFollowersSubscription } from "./__generated__/useNewFollowersSubscription.graphql";

const subscription = graphql`
  subscription useNewFollowersSubscription($filter: EventFilter!, $after: String) {
    events(filter: $filter, after: $after) {
      __typename
      cursor
      ... on UserFollowed {
        follower {
          id
          login
          name
          followingCount
          relationship {
            id
            state
            followedBy
          }
        }
        followee {
          id
          followersCount
        }
      }
    }
  }
`;

/** Show a notice when a user follows the viewer. Counts and badges on the screen change with the store. */
export function useNewFollowers(viewerId: string): void {
  const environment = useRelayEnvironment();
  const toast = useToast();

  useEffect(() => {
    let after: string | undefined;
    let failures = 0;
    let isOver = false;
    let end = (): void => undefined;

    function listen(): void {
      const { dispose } = requestSubscription<useNewFollowersSubscription>(environment, {
        subscription,
        variables: { filter: { users: [viewerId], kinds: ["USER_FOLLOWED"] }, after },
        onNext(data) {
          if (!data) return;
          const { cursor, follower, followee } = data.events;
          failures = 0;
          after = cursor;
          if (!follower || followee?.id !== viewerId) return; // a checkpoint, or the viewer follows
          const { login, name } = follower;
          toast(
            <>
              <a href={profilePath(login)}>
                <bdi>{name}</bdi>
              </a>{" "}
              follows you now.
            </>,
          );
        },
        onError: (problem) => void again(problem),
        onCompleted: () => void again(undefined),
      });
      end = dispose;
    }

    async function again(problem: unknown): Promise<void> {
      if (!failure(problem).canRetry) return;
      await pause(failures++);
      if (!isOver) listen();
    }

    listen();
    return () => {
      isOver = true;
      end();
    };
  }, [environment, viewerId, toast]);
}
