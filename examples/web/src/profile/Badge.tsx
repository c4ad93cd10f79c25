import { graphql, useFragment } from "react-relay";
import type { Badge_relationship$key } from "./__generated__/Badge_relationship.graphql";

const TEXTS: Record<string, string> = { FOLLOWED_BY: "Follows you", MUTUAL: "Mutual" };

/** Say whether the user follows the viewer. States that this version does not know show nothing. */
export function Badge({ relationship }: { relationship: Badge_relationship$key }) {
  const { state } = useFragment(
    graphql`
      fragment Badge_relationship on Relationship {
        state
      }
    `,
    relationship,
  );
  const text = TEXTS[state];
  return text ? <span className="badge">{text}</span> : null;
}
