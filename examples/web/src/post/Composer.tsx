import type { ChangeEvent, KeyboardEvent, SubmitEvent } from "react";
import { graphql, useFragment, useMutation, useRelayEnvironment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { Field } from "../ui/Field";
import { useToast } from "../ui/Toasts";
import { useErrors } from "../ui/useErrors";
import { fieldErrors, outage } from "../ui/userErrors";
import { addPost, addTo } from "./connections";
import { Counter } from "./Counter";
import { useDraft } from "./draft";
import { charactersLeft } from "./length";
import type { ComposerMutation } from "./__generated__/ComposerMutation.graphql";
import type { Composer_viewer$key } from "./__generated__/Composer_viewer.graphql";

interface Props {
  viewer: Composer_viewer$key;
  /** The post to reply to. Without it, the post begins a thread. */
  replyToId?: string;
  /** The post to quote. */
  quotedPostId?: string;
  /** Whether the post to reply to is gone. Then the form only keeps the text that the user has written. */
  isClosed?: boolean;
  onPublished?: () => void;
}

/** The texts of the form for a post, a reply and a quote. */
const POST = { name: "New post", label: "What is new?", button: "Publish", done: "Your post has been published." };
const REPLY = { name: "New reply", label: "Your reply", button: "Reply", done: "Your reply has been published." };
const QUOTE = { name: "New quote", label: "Your comment", button: "Quote", done: "Your quote has been published." };
const CLOSED = "This reply can no longer be published. Its text stays here until you delete it.";

/** A form that publishes a post. */
export function Composer({ viewer, replyToId, quotedPostId, isClosed = false, onPublished }: Props) {
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
        post {
          id
          author {
            id
            postsCount
          }
          replyToId
          replyTo {
            id
            repliesCount
          }
          quotedPost {
            id
            quotesCount
          }
        }
        postEdge {
          cursor
          node {
            id
            ...PostCard_post
          }
        }
        timelineEdge {
          cursor
          node {
            id
            ...EntryCard_entry
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
  const [{ text, key }, setText] = useDraft(user.id, quotedPostId ? `quote:${quotedPostId}` : replyToId);
  const texts = quotedPostId ? QUOTE : replyToId ? REPLY : POST;
  const canPublish = !isClosed && text.trim() !== "" && charactersLeft(text) >= 0;
  const { errors, setErrors, form } = useErrors();

  function submit() {
    if (isPublishing || !canPublish) return;
    setErrors([]);
    publish({
      variables: { input: { text, platform: "Web", idempotencyKey: key, replyToId, quotedPostId } },
      optimisticUpdater(store) {
        if (replyToId) addTo(store, replyToId, "repliesCount", 1);
        if (quotedPostId) addTo(store, quotedPostId, "quotesCount", 1);
      },
      updater(store) {
        // Other posts may have arrived since the server published this one.
        addPost(environment, store, store.getRootField("publishPost"), user.id);
      },
      onCompleted({ publishPost }) {
        if (publishPost?.post) {
          setText("");
          toast(texts.done);
          onPublished?.();
        } else setErrors(fieldErrors(publishPost?.userErrors));
      },
      onError: (problem) => setErrors([outage(problem)]),
    });
  }

  if (isClosed && !text) return null;

  function submitForm(event: SubmitEvent) {
    event.preventDefault();
    submit();
  }

  function submitWithKeys(event: KeyboardEvent) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) submit();
  }

  return (
    <form className="composer" ref={form} onSubmit={submitForm} aria-label={texts.name}>
      <Avatar user={user} />
      <div className="composer-body">
        <Field
          label={texts.label}
          rows={3}
          dir="auto"
          value={text}
          onChange={(event: ChangeEvent<HTMLTextAreaElement>) => {
            setText(event.target.value);
            setErrors([]);
          }}
          onKeyDown={submitWithKeys}
          readOnly={isPublishing}
          errors={errors}
          hint={isClosed ? CLOSED : undefined}
        />
        <div className="composer-end">
          <Counter text={text} />
          <button className="button" aria-disabled={isPublishing || !canPublish}>
            {texts.button}
          </button>
        </div>
      </div>
    </form>
  );
}
