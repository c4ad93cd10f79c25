import { graphql, useFragment } from "react-relay";
import type { Avatar_user$key } from "./__generated__/Avatar_user.graphql";

const HUES = 12;
const letters = new Intl.Segmenter();

/** Draw a user's initials. The name is next to it, so screen readers skip it. */
export function Avatar({ user, isLarge = false }: { user: Avatar_user$key; isLarge?: boolean }) {
  const { login, name } = useFragment(
    graphql`
      fragment Avatar_user on User {
        login
        name
      }
    `,
    user,
  );
  const initials = name.trim().split(/\s+/).slice(0, 2).map(firstLetter).join("");
  const hue = Array.from(login).reduce((sum, letter) => sum + (letter.codePointAt(0) ?? 0), 0) % HUES;
  return (
    <span
      className={isLarge ? "avatar avatar-large" : "avatar"}
      style={{ "--hue": (hue * 360) / HUES } as React.CSSProperties}
      aria-hidden="true"
    >
      {initials}
    </span>
  );
}

/** Return the first letter as readers perceive it, such as an emoji of several characters. */
function firstLetter(word: string): string {
  const [letter] = letters.segment(word);
  return letter?.segment.toUpperCase() ?? "";
}
