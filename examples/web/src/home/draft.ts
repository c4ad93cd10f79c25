import { useState } from "react";

/** A post that is not published yet. The key makes sure that sending it again cannot publish it twice. */
export interface Draft {
  readonly text: string;
  readonly key: string;
}

const nameOf = (userId: string): string => `fanline-draft:${userId}`;

/**
 * Return the user's draft and a function that changes its text. A changed text is another post, with a key of its own.
 *
 * The draft is still there after a reload, and after the session has ended and the user has logged in again.
 */
export function useDraft(userId: string): [Draft, (text: string) => void] {
  const [draft, setDraft] = useState(() => read(userId) ?? create(""));
  const change = (text: string): void => {
    const changed = create(text);
    setDraft(changed);
    if (text) sessionStorage.setItem(nameOf(userId), JSON.stringify(changed));
    else forgetDraft(userId);
  };
  return [draft, change];
}

/** Remove a user's draft from the tab. */
export function forgetDraft(userId: string): void {
  sessionStorage.removeItem(nameOf(userId));
}

function read(userId: string): Draft | undefined {
  const stored = sessionStorage.getItem(nameOf(userId));
  return stored === null ? undefined : (JSON.parse(stored) as Draft);
}

function create(text: string): Draft {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // `randomUUID` needs HTTPS
  return { text, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
}
