import { graphql, useMutation } from "react-relay";
import type { RecordSourceProxy } from "relay-runtime";
import { useProblem } from "../post/useProblem";
import { useToast } from "../ui/Toasts";
import type { useMuteMutation } from "./__generated__/useMuteMutation.graphql";
import type { useMuteUnmuteMutation } from "./__generated__/useMuteUnmuteMutation.graphql";

type Change = (userId: string, mutes: boolean) => void;

/**
 * Return a function that mutes or unmutes a user, and whether it is running.
 *
 * The screen changes at once, and changes back if the server refuses. The live home timeline removes the posts itself.
 */
export function useMute(): [change: Change, isChanging: boolean] {
  const [mute, isMuting] = useMutation<useMuteMutation>(graphql`
    mutation useMuteMutation($input: MuteUserInput!) {
      muteUser(input: $input) {
        user {
          login
          ...MuteButton_user
        }
        userErrors {
          message
        }
      }
    }
  `);
  const [unmute, isUnmuting] = useMutation<useMuteUnmuteMutation>(graphql`
    mutation useMuteUnmuteMutation($input: UnmuteUserInput!) {
      unmuteUser(input: $input) {
        user {
          login
          ...MuteButton_user
        }
        userErrors {
          message
        }
      }
    }
  `);
  const toast = useToast();
  const { onErrors, onError } = useProblem();

  function change(userId: string, mutes: boolean) {
    const options = {
      variables: { input: { userId } },
      optimisticUpdater(store: RecordSourceProxy) {
        store.get(userId)?.getLinkedRecord("relationship").setValue(mutes, "muting");
      },
      onError,
    };
    if (mutes) {
      mute({
        ...options,
        onCompleted({ muteUser: payload }) {
          onErrors(payload?.userErrors);
          if (payload?.user) toast(`You muted @${payload.user.login}. They are not notified.`);
        },
      });
    } else {
      unmute({
        ...options,
        onCompleted({ unmuteUser: payload }) {
          onErrors(payload?.userErrors);
          if (payload?.user) toast(`You unmuted @${payload.user.login}.`);
        },
      });
    }
  }

  return [change, isMuting || isUnmuting];
}
