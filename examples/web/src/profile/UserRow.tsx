import type { ReactNode } from "react";
import { graphql, useFragment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { profilePath } from "../ui/router";
import { Badge } from "./Badge";
import { FollowButton } from "./FollowButton";
import type { UserRow_user$key } from "./__generated__/UserRow_user.graphql";

interface Props {
  user: UserRow_user$key;
  viewerId: string;
  /** What replaces the button to follow the user. */
  children?: ReactNode;
}

export function UserRow({ user, viewerId, children }: Props) {
  const data = useFragment(
    graphql`
      fragment UserRow_user on User {
        login
        name
        bio
        relationship {
          id
          ...Badge_relationship
        }
        ...Avatar_user
        ...FollowButton_user
      }
    `,
    user,
  );
  return (
    <article className="user-row" aria-label={data.name}>
      <Avatar user={data} />
      <div className="user-row-body">
        <a href={profilePath(data.login)}>
          <strong>
            <bdi>{data.name}</bdi>
          </strong>
        </a>
        <div className="user-row-login">
          @{data.login} {data.relationship && <Badge relationship={data.relationship} />}
        </div>
        {data.bio && (
          <p>
            <bdi>{data.bio}</bdi>
          </p>
        )}
      </div>
      {children ?? <FollowButton user={data} viewerId={viewerId} />}
    </article>
  );
}
