import { useEffect, useRef, useSyncExternalStore } from "react";
import { graphql, useMutation } from "react-relay";
import type { useMarkReadMutation } from "./__generated__/useMarkReadMutation.graphql";

/** Mark the notifications as read, up to the newest one, while the user can see the page. */
export function useMarkRead(unreadCount: number, newest: string | undefined): void {
  const isVisible = useSyncExternalStore(onVisibilityChange, () => document.visibilityState === "visible");
  const [mark] = useMutation<useMarkReadMutation>(graphql`
    mutation useMarkReadMutation($input: MarkNotificationsReadInput!) {
      markNotificationsRead(input: $input) {
        notifications {
          id
          unreadCount
          hasMoreUnread
        }
      }
    }
  `);
  const marked = useRef<string>(undefined);

  useEffect(() => {
    if (!isVisible || unreadCount === 0 || newest === undefined || marked.current === newest) return;
    marked.current = newest;
    mark({
      variables: { input: { upTo: newest } },
      onError: () => (marked.current = undefined), // the next notification tries again
    });
  }, [isVisible, unreadCount, newest, mark]);
}

function onVisibilityChange(listener: () => void): () => void {
  document.addEventListener("visibilitychange", listener);
  return () => document.removeEventListener("visibilitychange", listener);
}
