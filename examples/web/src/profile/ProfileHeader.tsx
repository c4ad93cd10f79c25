import { useRef } from "react";
import { graphql, useFragment } from "react-relay";
import { EditProfile } from "../account/EditProfile";
import { Avatar } from "../ui/Avatar";
import { Badge } from "./Badge";
import { FollowButton } from "./FollowButton";
import { ProfileMenu } from "./ProfileMenu";
import type { ProfileHeader_user$key } from "./__generated__/ProfileHeader_user.graphql";

const month = new Intl.DateTimeFormat("en", { month: "long", year: "numeric" });

export function ProfileHeader({ user, viewerId }: { user: ProfileHeader_user$key; viewerId: string }) {
  const data = useFragment(
    graphql`
      fragment ProfileHeader_user on User {
        id
        login
        name
        bio
        joinedAt
        relationship {
          id
          ...Badge_relationship
        }
        ...Avatar_user
        ...FollowButton_user
        ...ProfileMenu_user
        ...EditProfile_user
      }
    `,
    user,
  );
  const dialog = useRef<HTMLDialogElement>(null);
  const isViewer = data.id === viewerId;
  return (
    <section className="profile" aria-label="About the user">
      <title>{`${data.name} (@${data.login}) · Fanline`}</title>
      <Avatar user={data} isLarge />
      {isViewer ? (
        <>
          <button className="button button-quiet" onClick={() => dialog.current?.showModal()}>
            Edit profile
          </button>
          <EditProfile user={data} dialog={dialog} />
        </>
      ) : (
        <div className="profile-actions">
          <FollowButton user={data} viewerId={viewerId} />
          <ProfileMenu user={data} />
        </div>
      )}
      <div className="profile-body">
        <div>
          <h1>
            <bdi>{data.name}</bdi>
          </h1>
          <p className="profile-login">
            @{data.login} {data.relationship && <Badge relationship={data.relationship} />}
          </p>
        </div>
        {data.bio && (
          <p className="bio">
            <bdi>{data.bio}</bdi>
          </p>
        )}
        <p className="quiet">Joined in {month.format(new Date(data.joinedAt))}</p>
      </div>
    </section>
  );
}
