import { graphql, useFragment } from "react-relay";
import { UserRow } from "../profile/UserRow";
import type { FoundUsers_users$key } from "./__generated__/FoundUsers_users.graphql";

const MOST = 50;

/** Return whether users can be searched for: by the beginnings of words, and not by a hashtag. */
export function canNameUsers(text: string): boolean {
  return /^[^#]*[\p{L}\p{N}]/u.test(text) && Array.from(text).length <= MOST;
}

/** The few users whose login or name matches best. */
export function FoundUsers({ users, viewerId }: { users: FoundUsers_users$key; viewerId: string }) {
  const { edges } = useFragment(
    graphql`
      fragment FoundUsers_users on UserConnection {
        edges {
          node {
            id
            ...UserRow_user
          }
        }
      }
    `,
    users,
  );
  if (edges.length === 0) return null;
  return (
    <ol className="list" aria-label="users">
      {edges.map(({ node }) => (
        <li key={node.id}>
          <UserRow user={node} viewerId={viewerId} />
        </li>
      ))}
    </ol>
  );
}
