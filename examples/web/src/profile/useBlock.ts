import { graphql, useMutation } from "react-relay";
import { useProblem } from "../post/useProblem";
import { useToast } from "../ui/Toasts";
import type { useBlockMutation } from "./__generated__/useBlockMutation.graphql";
import type { useBlockUnblockMutation } from "./__generated__/useBlockUnblockMutation.graphql";

type Change = (userId: string, blocks: boolean) => void;

/** Return a function that blocks or unblocks a user, and whether it is running. The screen changes after the answer. */
export function useBlock(): [change: Change, isChanging: boolean] {
  const [block, isBlocking] = useMutation<useBlockMutation>(graphql`
    mutation useBlockMutation($input: BlockUserInput!) {
      blockUser(input: $input) {
        user {
          login
          followersCount
          followingCount
          ...BlockButton_user
          ...FollowButton_user
        }
        viewer {
          user {
            id
            followersCount
            followingCount
          }
        }
        userErrors {
          message
        }
      }
    }
  `);
  const [unblock, isUnblocking] = useMutation<useBlockUnblockMutation>(graphql`
    mutation useBlockUnblockMutation($input: UnblockUserInput!) {
      unblockUser(input: $input) {
        user {
          login
          ...BlockButton_user
          ...FollowButton_user
        }
        userErrors {
          message
        }
      }
    }
  `);
  const toast = useToast();
  const { onErrors, onError } = useProblem();

  function change(userId: string, blocks: boolean) {
    const options = { variables: { input: { userId } }, onError };
    if (blocks) {
      block({
        ...options,
        onCompleted({ blockUser: payload }) {
          onErrors(payload?.userErrors);
          if (payload?.user) toast(`You blocked @${payload.user.login}.`);
        },
      });
    } else {
      unblock({
        ...options,
        onCompleted({ unblockUser: payload }) {
          onErrors(payload?.userErrors);
          if (payload?.user) toast(`You unblocked @${payload.user.login}.`);
        },
      });
    }
  }

  return [change, isBlocking || isUnblocking];
}
