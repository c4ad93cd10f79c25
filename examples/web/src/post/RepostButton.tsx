import { addEdge } from "@fanline/client/relay";
import { graphql, useFragment, useMutation, useRelayEnvironment } from "react-relay";
import type { RecordSourceProxy } from "relay-runtime";
import { RepostIcon } from "../ui/icons";
import { Action } from "./Action";
import { addTo, forget, shows, timelineConnections } from "./connections";
import { useProblem } from "./useProblem";
import type { RepostButtonMutation } from "./__generated__/RepostButtonMutation.graphql";
import type { RepostButtonUnrepostMutation } from "./__generated__/RepostButtonUnrepostMutation.graphql";
import type { RepostButton_post$key } from "./__generated__/RepostButton_post.graphql";

/** Reposts a post, or undoes the repost. The count changes at once; lists show the repost when the server has it. */
export function RepostButton({ post }: { post: RepostButton_post$key }) {
  const environment = useRelayEnvironment();
  const { id, repostsCount, viewerHasReposted } = useFragment(
    graphql`
      fragment RepostButton_post on Post {
        id
        repostsCount
        viewerHasReposted
      }
    `,
    post,
  );
  const [repost, isReposting] = useMutation<RepostButtonMutation>(graphql`
    mutation RepostButtonMutation($input: RepostPostInput!) {
      repostPost(input: $input) {
        timelineEdge {
          cursor
          node {
            id
            author {
              id
              postsCount
            }
            ...EntryCard_entry
          }
        }
        userErrors {
          message
        }
      }
    }
  `);
  const [unrepost, isUnreposting] = useMutation<RepostButtonUnrepostMutation>(graphql`
    mutation RepostButtonUnrepostMutation($input: UnrepostPostInput!) {
      unrepostPost(input: $input) {
        post {
          ...RepostButton_post
        }
        deletedRepostId
        userErrors {
          message
        }
      }
    }
  `);
  const { onErrors, onError } = useProblem();
  const isReposted = viewerHasReposted === true;

  function change() {
    const options = {
      variables: { input: { postId: id } },
      optimisticUpdater(store: RecordSourceProxy) {
        store.get(id)?.setValue(!isReposted, "viewerHasReposted");
        addTo(store, id, "repostsCount", isReposted ? -1 : 1);
      },
      onError,
    };
    if (isReposted) {
      unrepost({
        ...options,
        updater(store, data) {
          if (data?.unrepostPost?.deletedRepostId) forget(environment, store, data.unrepostPost.deletedRepostId);
        },
        onCompleted: (data) => onErrors(data.unrepostPost?.userErrors),
      });
    } else {
      repost({
        ...options,
        updater(store, data) {
          const author = data?.repostPost?.timelineEdge?.node.author.id;
          const edge = store.getRootField("repostPost").getLinkedRecord("timelineEdge");
          // In a list that shows the post, the repost would take its place while the user is using it.
          const lists = author ? timelineConnections(environment, author).filter((list) => !shows(store, list, id)) : [];
          for (const list of lists) addEdge(store, list, edge);
        },
        onCompleted: (data) => onErrors(data.repostPost?.userErrors),
      });
    }
  }

  return (
    <Action
      name="Repost"
      count={repostsCount}
      isOn={isReposted}
      isChanging={isReposting || isUnreposting}
      onPress={change}
    >
      <RepostIcon />
    </Action>
  );
}
