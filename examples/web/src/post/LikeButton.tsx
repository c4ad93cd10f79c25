import { graphql, useFragment, useMutation } from "react-relay";
import type { RecordSourceProxy } from "relay-runtime";
import { HeartIcon } from "../ui/icons";
import { Action } from "./Action";
import { addTo } from "./connections";
import { useProblem } from "./useProblem";
import type { LikeButtonMutation } from "./__generated__/LikeButtonMutation.graphql";
import type { LikeButtonUnlikeMutation } from "./__generated__/LikeButtonUnlikeMutation.graphql";
import type { LikeButton_post$key } from "./__generated__/LikeButton_post.graphql";

/** Likes a post, or removes the like. The screen changes at once, and changes back if the server refuses. */
export function LikeButton({ post }: { post: LikeButton_post$key }) {
  const { id, likesCount, viewerHasLiked } = useFragment(
    graphql`
      fragment LikeButton_post on Post {
        id
        likesCount
        viewerHasLiked
      }
    `,
    post,
  );
  const [like, isLiking] = useMutation<LikeButtonMutation>(graphql`
    mutation LikeButtonMutation($input: LikePostInput!) {
      likePost(input: $input) {
        post {
          ...LikeButton_post
        }
        userErrors {
          message
        }
      }
    }
  `);
  const [unlike, isUnliking] = useMutation<LikeButtonUnlikeMutation>(graphql`
    mutation LikeButtonUnlikeMutation($input: UnlikePostInput!) {
      unlikePost(input: $input) {
        post {
          ...LikeButton_post
        }
        userErrors {
          message
        }
      }
    }
  `);
  const { onErrors, onError } = useProblem();
  const isLiked = viewerHasLiked === true;

  function change() {
    const options = {
      variables: { input: { postId: id } },
      optimisticUpdater(store: RecordSourceProxy) {
        store.get(id)?.setValue(!isLiked, "viewerHasLiked");
        addTo(store, id, "likesCount", isLiked ? -1 : 1);
      },
      onError,
    };
    if (isLiked) unlike({ ...options, onCompleted: ({ unlikePost }) => onErrors(unlikePost?.userErrors) });
    else like({ ...options, onCompleted: ({ likePost }) => onErrors(likePost?.userErrors) });
  }

  return (
    <Action
      name="Like"
      className="action-like"
      count={likesCount}
      isOn={isLiked}
      isChanging={isLiking || isUnliking}
      onPress={change}
    >
      <HeartIcon />
    </Action>
  );
}
