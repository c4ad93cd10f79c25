import { Suspense } from "react";
import { fetchQuery, graphql, useLazyLoadQuery, useRelayEnvironment } from "react-relay";
import { useAuthorEvents } from "../live/useAuthorEvents";
import { ErrorBoundary, useAttempt } from "../ui/ErrorBoundary";
import { Loading } from "../ui/Loading";
import { homePath, profilePath } from "../ui/router";
import type { Tab } from "../ui/router";
import { Followers } from "./Followers";
import { Following } from "./Following";
import { ProfileHeader } from "./ProfileHeader";
import { ProfilePosts } from "./ProfilePosts";
import type { ProfileScreenQuery } from "./__generated__/ProfileScreenQuery.graphql";

const NAMES = { posts: "Posts", followers: "Followers", following: "Followed users" };
const LISTS = { posts: ProfilePosts, followers: Followers, following: Following };

const query = graphql`
  query ProfileScreenQuery($login: String!) {
    viewer {
      user {
        id
      }
    }
    user(by: { login: $login }) {
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
        liveCursor
      }
      ...ProfileHeader_user
    }
  }
`;

export function ProfileScreen({ login, tab }: { login: string; tab: Tab }) {
  const environment = useRelayEnvironment();
  const options = { fetchKey: useAttempt(), fetchPolicy: "store-and-network" } as const;
  const { viewer, user } = useLazyLoadQuery<ProfileScreenQuery>(query, { login }, options);
  useAuthorEvents({ userId: user?.id, liveCursor: user?.timeline.liveCursor, refetch });

  async function refetch(): Promise<string | null | undefined> {
    const data = await fetchQuery<ProfileScreenQuery>(environment, query, { login }).toPromise();
    if (!data?.user) throw new Error("The user is gone."); // the screen says so, and stops listening
    return data.user.timeline.liveCursor;
  }

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
  const { relationship, postsCount, followersCount, followingCount } = user;
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
      {relationship?.blocking || relationship?.blockedBy ? (
        <Hidden login={user.login} isOwn={relationship.blocking} />
      ) : (
        <ErrorBoundary name={NAMES[tab]} key={tab}>
          <Suspense fallback={<Loading name={tab} />}>
            <List userId={user.id} viewerId={viewer.user.id} />
          </Suspense>
        </ErrorBoundary>
      )}
    </>
  );
}

/** Say why a list is empty. */
function Hidden({ login, isOwn }: { login: string; isOwn: boolean }) {
  return (
    <div className="message">
      <h2>{isOwn ? `You block @${login}` : `@${login} blocks you`}</h2>
      <p>Neither of you sees the other’s posts, followers and followed users.</p>
    </div>
  );
}
