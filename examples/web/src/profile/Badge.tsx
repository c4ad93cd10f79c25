import { graphql, useFragment } from "react-relay";
import type { Badge_relationship$key } from "./__generated__/Badge_relationship.graphql";

const TEXTS: Record<string, string> = { FOLLOWED_BY: "Follows you", MUTUAL: "Mutual" };

/** Show whether the user follows the viewer, and what is hidden; nothing for states that this version does not know. */
export function Badge({ relationship }: { relationship: Badge_relationship$key }) {
  const { state, muting, blocking } = useFragment(
    graphql`
      fragment Badge_relationship on Relationship {
        state
        muting
        blocking
      }
    `,
    relationship,
  );
  return [TEXTS[state], muting && "Muted", blocking && "Blocked"].map(
    (text) =>
      text && (
        <span className="badge" key={text}>
          {text}
        </span>
      ),
  );
}
