import { graphql, useMutation, useRelayEnvironment } from "react-relay";
import { useToast } from "../ui/Toasts";
import { outage } from "../ui/userErrors";
import { forget } from "./connections";
import type { DeleteButtonMutation } from "./__generated__/DeleteButtonMutation.graphql";

export function DeleteButton({ postId }: { postId: string }) {
  const environment = useRelayEnvironment();
  const toast = useToast();
  const [remove, isRemoving] = useMutation<DeleteButtonMutation>(graphql`
    mutation DeleteButtonMutation($input: DeletePostInput!) {
      deletePost(input: $input) {
        deletedPostId
        viewer {
          user {
            id
            postsCount
          }
        }
        replyTo {
          id
          repliesCount
        }
        quotedPost {
          id
          quotesCount
        }
        userErrors {
          message
        }
      }
    }
  `);

  function confirmed() {
    if (!confirm("Delete this post? It cannot be restored.")) return;
    remove({
      variables: { input: { postId } },
      updater(store, data) {
        if (data?.deletePost?.deletedPostId) forget(environment, store, postId);
      },
      onCompleted: ({ deletePost }) => {
        const [error] = deletePost?.userErrors ?? [];
        toast(error ? error.message : "The post has been deleted.");
        if (!error) document.getElementById("main")?.focus({ preventScroll: true }); // the button is gone
      },
      onError: (problem) => toast(outage(problem).text),
    });
  }

  return (
    <button className="link link-quiet" disabled={isRemoving} onClick={confirmed}>
      Delete
    </button>
  );
}
