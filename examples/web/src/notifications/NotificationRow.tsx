import { Fragment, useId } from "react";
import type { ReactNode } from "react";
import { graphql, useFragment } from "react-relay";
import { Avatar } from "../ui/Avatar";
import { AtIcon, BellIcon, HeartIcon, PersonIcon, QuoteIcon, ReplyIcon, RepostIcon } from "../ui/icons";
import { postPath, profilePath } from "../ui/router";
import { Time } from "../ui/Time";
import type { NotificationRow_notification$key } from "./__generated__/NotificationRow_notification.graphql";

const TYPES: Record<string, [icon: ReactNode, text: string] | undefined> = {
  FollowNotification: [<PersonIcon key="" />, "followed you"],
  ReplyNotification: [<ReplyIcon key="" />, "replied to you"],
  QuoteNotification: [<QuoteIcon key="" />, "quoted your post"],
  MentionNotification: [<AtIcon key="" />, "mentioned you"],
  RepostNotification: [<RepostIcon key="" />, "reposted your post"],
  LikeNotification: [<HeartIcon key="" />, "liked your post"],
};

interface Props {
  notification: NotificationRow_notification$key;
  isNew: boolean;
}

/** Who did what, and a link to the post. For types that this version does not know, only who. */
export function NotificationRow({ notification, isNew }: Props) {
  const { __typename, at, actors, actorsCount, post } = useFragment(
    graphql`
      fragment NotificationRow_notification on Notification {
        __typename
        at
        actors(limit: 3) {
          id
          login
          name
          ...Avatar_user
        }
        actorsCount
        ... on PostNotification {
          post {
            id
            text
          }
        }
      }
    `,
    notification,
  );
  const [icon, text] = TYPES[__typename] ?? [<BellIcon key="" />, "did something new"];
  const textId = useId();
  const others = actorsCount - actors.length;
  return (
    <article className={isNew ? "notification notification-new" : "notification"} aria-labelledby={textId}>
      {icon}
      <div className="notification-body">
        <div className="notification-faces">
          {actors.map((user) => (
            <Avatar key={user.id} user={user} />
          ))}
        </div>
        <p>
          <span id={textId}>
            {isNew && <span className="visually-hidden">New: </span>}
            {actors.map(({ id, login, name }, place) => (
              <Fragment key={id}>
                {place > 0 && (place === actors.length - 1 && others <= 0 ? " and " : ", ")}
                <a href={profilePath(login)}>
                  <strong>
                    <bdi>{name}</bdi>
                  </strong>
                </a>
              </Fragment>
            ))}
            {others > 0 && ` and ${others.toLocaleString("en")} ${others === 1 ? "other" : "others"}`} {text}
          </span>{" "}
          <span className="quiet">
            · <Time at={at} />
          </span>
        </p>
        {post && (
          <a className="notification-post" href={postPath(post.id)} dir="auto">
            {post.text || "Pictures and videos"}
          </a>
        )}
      </div>
    </article>
  );
}
