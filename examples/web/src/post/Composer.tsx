import type { ChangeEvent, KeyboardEvent, SubmitEvent } from "react";
import { graphql, useFragment, useMutation, useRelayEnvironment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { Field } from "../ui/Field";
import { useToast } from "../ui/Toasts";
import { useErrors } from "../ui/useErrors";
import { fieldErrors, outage } from "../ui/userErrors";
import { addPost } from "./connections";
import { Counter } from "./Counter";
import { useDraft } from "./draft";
import type { ComposerMutation } from "./__generated__/ComposerMutation.graphql";
import type { Composer_viewer$key } from "./__generated__/Composer_viewer.graphql";

interface Props {
  viewer: Composer_viewer$key;
  /** The post to reply to. Without it, the post begins a thread. */
  replyTo?: string;
}

/** A form that publishes a post. */
export function Composer({ viewer, replyTo }: Props) {
  const environment = useRelayEnvironment();
  const toast = useToast();
  const user = useFragment(
    graphql`
      fragment Composer_viewer on User {
        id
        ...Avatar_user
      }
    `,
    viewer,
  );
  const [publish, isPublishing] = useMutation<ComposerMutation>(graphql`
    mutation ComposerMutation($input: PublishPostInput!) {
      publishPost(input: $input) {
        postEdge {
          cursor
          node {
            id
            ...PostCard_post
            author {
              id
              postsCount
            }
            replyToId
            replyTo {
              id
              repliesCount
            }
          }
        }
        userErrors {
          code
          message
          field
          params {
            name
            value
          }
        }
      }
    }
  `);
  const [{ text, key }, setText] = useDraft(user.id, replyTo);
  const isEmpty = text.trim() === "";
  const { errors, setErrors, form } = useErrors();

  function submit() {
    if (isPublishing || isEmpty) return;
    setErrors([]);
    publish({
      variables: { input: { text, platform: "Web", idempotencyKey: key, replyTo } },
      updater(store) {
        // Other posts may have arrived since the server published this one.
        const edge = store.getRootField("publishPost").getLinkedRecord("postEdge");
        addPost(environment, store, edge, user.id);
      },
      onCompleted({ publishPost }) {
        if (publishPost?.postEdge) {
          setText("");
          toast(replyTo ? "Your reply is published." : "Your post is published.");
        } else setErrors(fieldErrors(publishPost?.userErrors));
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  function submitForm(event: SubmitEvent) {
    event.preventDefault();
    submit();
  }

  function submitWithKeys(event: KeyboardEvent) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  }

  return (
    <form className="composer" ref={form} onSubmit={submitForm} aria-label={replyTo ? "New reply" : "New post"}>
      <Avatar user={user} />
      <div className="composer-body">
        <Field
          label={replyTo ? "Your reply" : "What is new?"}
          rows={replyTo ? 2 : 3}
          dir="auto"
          value={text}
          onChange={(event: ChangeEvent<HTMLTextAreaElement>) => {
            setText(event.target.value);
            setErrors([]);
          }}
          onKeyDown={submitWithKeys}
          readOnly={isPublishing}
          errors={errors}
        />
        <div className="composer-end">
          <Counter text={text} />
          <button className="button" aria-disabled={isPublishing || isEmpty}>
            {replyTo ? "Reply" : "Publish"}
          </button>
        </div>
      </div>
    </form>
  );
}
