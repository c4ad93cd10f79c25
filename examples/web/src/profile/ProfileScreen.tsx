import { Suspense } from "react";
import { graphql, useFragment, useLazyLoadQuery } from "react-relay";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { Loading } from "../ui/Loading";
import { homePath, profilePath } from "../ui/router";
import type { Tab } from "../ui/router";
import { Followers } from "./Followers";
import { Following } from "./Following";
import { ProfileHeader } from "./ProfileHeader";
import { ProfilePosts } from "./ProfilePosts";
import { useLiveProfile } from "./useLiveProfile";
import type { ProfileProps } from "./useLiveProfile";
import type { ProfileScreenQuery } from "./__generated__/ProfileScreenQuery.graphql";
import type { ProfileScreen_user$key } from "./__generated__/ProfileScreen_user.graphql";

const NAMES = { posts: "Posts", followers: "Followers", following: "Followed users" };
const LISTS = { posts: ProfilePosts, followers: Followers, following: Following };

export function ProfileScreen({ login, tab }: { login: string; tab: Tab }) {
  const { viewer, user: found } = useLazyLoadQuery<ProfileScreenQuery>(
    graphql`
      query ProfileScreenQuery($login: String!) {
        viewer {
          user {
            id
          }
        }
        user(by: { login: $login }) {
          ...ProfileScreen_user
        }
      }
    `,
    { login },
    { fetchKey: useAttempt(), fetchPolicy: "store-and-network" },
  );
  const user = useFragment<ProfileScreen_user$key>(
    graphql`
      fragment ProfileScreen_user on User {
        id
        login
        followersCount
        followingCount
        postsCount
        relationship {
          id
          blocking
          blockedBy
        }
        timeline {
          id
          profileCursor: liveCursor
        }
        ...ProfileHeader_user
      }
    `,
    found ?? null,
  );
  if (!viewer) return null; // the session has just ended
  if (!user) {
    return (
      <div className="message">
        <title>User not found · Fanline</title>
        <h1>There is no user @{login}</h1>
        <a href={homePath}>Go to your home timeline</a>
      </div>
    );
  }
  const List = LISTS[tab];
  const { relationship, timeline, postsCount, followersCount, followingCount } = user;
  const isHidden = relationship != null && (relationship.blocking || relationship.blockedBy);
  const props = { userId: user.id, login, timelineId: timeline.id, liveCursor: timeline.profileCursor, viewerId: viewer.user.id };
  const tabs: readonly (readonly [Tab, number, string])[] = [
    ["posts", postsCount, postsCount === 1 ? "post" : "posts"],
    ["followers", followersCount, followersCount === 1 ? "follower" : "followers"],
    ["following", followingCount, "following"],
  ];
  return (
    <>
      <ProfileHeader user={user} viewerId={viewer.user.id} />
      <nav className="tabs" aria-label="Profile">
        {tabs.map(([name, count, word]) => (
          <a key={name} href={profilePath(login, name)} aria-current={name === tab ? "page" : undefined}>
            <strong>{count.toLocaleString("en")}</strong> {word}
          </a>
        ))}
      </nav>
      {isHidden ? (
        <Hidden login={user.login} isOwn={relationship.blocking} />
      ) : (
        <ErrorBoundary name={NAMES[tab]} key={tab}>
          <Suspense fallback={<Loading name={tab} />}>
            <List {...props} />
          </Suspense>
        </ErrorBoundary>
      )}
      {(isHidden || tab !== "posts") && <Listener {...props} />}
    </>
  );
}

/** Keeps the profile up to date while the posts, which do so themselves, are not on the screen. */
function Listener(props: ProfileProps) {
  useLiveProfile(props);
  return null;
}

/** Say why a list is empty. */
function Hidden({ login, isOwn }: { login: string; isOwn: boolean }) {
  return (
    <div className="message">
      <h2>{isOwn ? `You have blocked @${login}` : `@${login} has blocked you`}</h2>
      <p>Neither of you sees the other’s posts, followers and followed users.</p>
    </div>
  );
}
