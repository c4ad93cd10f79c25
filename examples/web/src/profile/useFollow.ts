import { ConnectionHandler, graphql, useMutation, useRelayEnvironment } from "react-relay";
import type { RecordSourceProxy } from "relay-runtime";
import { useToast } from "../ui/Toasts";
import { outage } from "../ui/userErrors";
import type { useFollowMutation } from "./__generated__/useFollowMutation.graphql";
import type { useFollowUnfollowMutation } from "./__generated__/useFollowUnfollowMutation.graphql";

interface Problem {
  readonly message: string;
}

interface Payload {
  readonly results: readonly { readonly error: Problem | null | undefined }[];
  readonly userErrors: readonly Problem[];
}

type Change = (userId: string, follows: boolean) => void;

/**
 * Return a function that follows or unfollows a user, and whether it is running.
 *
 * The screen changes at once, and changes back if the server refuses. A user who is unfollowed stays in a list that is
 * on the screen, because otherwise the next user would be under the pointer.
 */
export function useFollow(viewerId: string): [change: Change, isChanging: boolean] {
  const [follow, isFollowing] = useMutation<useFollowMutation>(graphql`
    mutation useFollowMutation($input: FollowUsersInput!, $connections: [ID!]!) {
      followUsers(input: $input) {
        results {
          error {
            message
          }
          user {
            ...FollowButton_user
            followersCount
          }
          followEdge @prependEdge(connections: $connections) {
            cursor
            node {
              id
              ...UserRow_user
            }
          }
        }
        viewer {
          user {
            id
            followingCount
          }
        }
        userErrors {
          message
        }
      }
    }
  `);
  const [unfollow, isUnfollowing] = useMutation<useFollowUnfollowMutation>(graphql`
    mutation useFollowUnfollowMutation($input: UnfollowUsersInput!) {
      unfollowUsers(input: $input) {
        results {
          error {
            message
          }
          user {
            ...FollowButton_user
            followersCount
          }
        }
        viewer {
          user {
            id
            followingCount
          }
        }
        userErrors {
          message
        }
      }
    }
  `);
  const environment = useRelayEnvironment();
  const toast = useToast();

  /** Show why nothing has changed: the reason is in the result for the user, or concerns the whole input. */
  function report(payload: Payload | null | undefined) {
    const error = payload?.userErrors[0] ?? payload?.results[0]?.error;
    if (error) toast(error.message);
  }

  function change(userId: string, follows: boolean) {
    const input = { userIds: [userId] };
    const options = {
      optimisticUpdater: (store: RecordSourceProxy) => setFollowing(store, userId, follows),
      onError: (problem: Error) => toast(outage(problem).text),
    };
    if (follows) {
      const list = ConnectionHandler.getConnectionID(viewerId, "Following_following");
      const connections = environment.getStore().getSource().has(list) ? [list] : [];
      follow({
        ...options,
        variables: { input, connections },
        onCompleted: ({ followUsers }) => report(followUsers),
      });
    } else {
      unfollow({
        ...options,
        variables: { input },
        onCompleted: ({ unfollowUsers }) => report(unfollowUsers),
      });
    }
  }

  return [change, isFollowing || isUnfollowing];
}

function setFollowing(store: RecordSourceProxy, userId: string, follows: boolean): void {
  const user = store.get(userId);
  const relationship = user?.getLinkedRecord("relationship");
  if (!user || !relationship) return;
  const followedBy = relationship.getValue("followedBy") === true;
  relationship.setValue(follows, "following");
  relationship.setValue(follows ? (followedBy ? "MUTUAL" : "FOLLOWING") : followedBy ? "FOLLOWED_BY" : "STRANGER", "state");
  const count: unknown = user.getValue("followersCount");
  if (typeof count === "number") user.setValue(count + (follows ? 1 : -1), "followersCount");
}
