import { useState } from "react";

/** A post that is not published yet. The key ensures that sending it again does not publish it twice. */
export interface Draft {
  readonly text: string;
  readonly key: string;
}

const PREFIX = "fanline-draft:";

/**
 * Return a user's draft and a function that changes its text. A changed text is another post, with a new key.
 * A user has a draft for each `place`, such as below a post.
 *
 * The draft is still there after a reload, and after the session has ended and the user has logged in again.
 */
export function useDraft(userId: string, place = ""): [Draft, (text: string) => void] {
  const name = `${PREFIX}${userId}:${place}`;
  const [draft, setDraft] = useState(() => read(name) ?? create(""));
  const change = (text: string): void => {
    const changed = create(text);
    setDraft(changed);
    if (text) sessionStorage.setItem(name, JSON.stringify(changed));
    else sessionStorage.removeItem(name);
  };
  return [draft, change];
}

/** Remove a user's drafts from the tab. */
export function forgetDrafts(userId: string): void {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith(`${PREFIX}${userId}:`)) sessionStorage.removeItem(name);
  }
}

function read(name: string): Draft | undefined {
  const stored = sessionStorage.getItem(name);
  return stored === null ? undefined : (JSON.parse(stored) as Draft);
}

function create(text: string): Draft {
  const bytes = crypto.getRandomValues(new Uint8Array(16)); // `randomUUID` needs HTTPS
  return { text, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") };
}
