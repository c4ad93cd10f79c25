import { createContext, Suspense, useContext, useEffect, useRef, useState } from "react";
import type { ReactNode } from "react";
import { graphql, useFragment, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { CloseIcon } from "../ui/icons";
import { Loading } from "../ui/Loading";
import { Composer } from "./Composer";
import { QuotedPost } from "./QuotedPost";
import type { QuotingQuery } from "./__generated__/QuotingQuery.graphql";
import type { Quoting_viewer$key } from "./__generated__/Quoting_viewer.graphql";

const Quote = createContext<(postId: string) => void>(() => undefined);

/** Return a function that opens the dialog to quote a post. */
export function useQuote(): (postId: string) => void {
  return useContext(Quote);
}

/** The dialog in which the viewer quotes a post. All posts of the app share it. */
export function Quoting({ viewer, children }: { viewer: Quoting_viewer$key; children: ReactNode }) {
  const user = useFragment(
    graphql`
      fragment Quoting_viewer on User {
        ...Composer_viewer
      }
    `,
    viewer,
  );
  const [id, setId] = useState<string>();
  const dialog = useRef<HTMLDialogElement>(null);
  const close = (): void => dialog.current?.close();

  useEffect(() => {
    if (id !== undefined) dialog.current?.showModal();
    addEventListener("hashchange", close);
    return () => removeEventListener("hashchange", close);
  }, [id]);

  return (
    <Quote value={setId}>
      {children}
      {id !== undefined && (
        <dialog ref={dialog} aria-labelledby="quote-title" className="card quoting" onClose={() => setId(undefined)}>
          <header>
            <h2 id="quote-title">Quote a post</h2>
            <button className="icon" aria-label="Close" onClick={close}>
              <CloseIcon />
            </button>
          </header>
          <Composer viewer={user} quotedPostId={id} onPublished={close} />
          <ErrorBoundary name="The post">
            <Suspense fallback={<Loading name="post" rows={1} />}>
              <Original id={id} />
            </Suspense>
          </ErrorBoundary>
        </dialog>
      )}
    </Quote>
  );
}

function Original({ id }: { id: string }) {
  const { post } = useLazyLoadQuery<QuotingQuery>(
    graphql`
      query QuotingQuery($id: ID!) {
        post(id: $id) {
          ...QuotedPost_post
        }
      }
    `,
    { id },
    { fetchKey: useAttempt() },
  );
  return <QuotedPost post={post} />;
}
