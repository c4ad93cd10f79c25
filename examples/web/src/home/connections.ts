import { ConnectionHandler } from "react-relay";
import type { Environment } from "relay-runtime";

/** Return those of the lists with a user's posts that are in the store: the home timeline and the user's own. */
export function postConnections(environment: Environment, userId: string): string[] {
  const source = environment.getStore().getSource();
  const of = (field: string, key: string): string | undefined => {
    const timeline = source.get(userId)?.[field] as { __ref?: string } | null | undefined;
    return timeline?.__ref && ConnectionHandler.getConnectionID(timeline.__ref, key);
  };
  const ids = [of("homeTimeline", "HomeFeed_posts"), of("timeline", "ProfilePosts_posts")];
  return ids.filter((id): id is string => id !== undefined && source.has(id));
}
