import { Suspense, useEffect, useRef, useState } from "react";
import { graphql, useFragment } from "react-relay";
import { BlockedUsers } from "../account/BlockedUsers";
import { MutedUsers } from "../account/MutedUsers";
import { SessionsScreen } from "../account/SessionsScreen";
import { HomeScreen } from "../home/HomeScreen";
import { useNewFollowers } from "../live/useNewFollowers";
import { NotificationsScreen } from "../notifications/NotificationsScreen";
import { PostScreen } from "../post/PostScreen";
import { Quoting } from "../post/Quoting";
import { ProfileScreen } from "../profile/ProfileScreen";
import { SearchScreen } from "../search/SearchScreen";
import { ErrorBoundary } from "./ErrorBoundary";
import { Loading } from "./Loading";
import { NavigationBar } from "./NavigationBar";
import { homePath, parse, useHash } from "./router";
import type { Shell_viewer$key } from "./__generated__/Shell_viewer.graphql";

/** The frame of all screens. The home timeline stays live, and where the user has scrolled to, behind the others. */
export function Shell({ viewer }: { viewer: Shell_viewer$key }) {
  const data = useFragment(
    graphql`
      fragment Shell_viewer on User {
        id
        ...NavigationBar_viewer
        ...Quoting_viewer
      }
    `,
    viewer,
  );
  useNewFollowers(data.id);
  const hash = useHash();
  const route = parse(hash);
  const isHome = route.name === "home";
  const main = useRef<HTMLElement>(null);
  const [wasHome, setWasHome] = useState(isHome);
  if (isHome && !wasHome) setWasHome(true);
  useScrollPosition(hash, main);

  return (
    <Quoting viewer={data}>
      <a className="skip" href="#main" onClick={(event) => skip(event, main.current)}>
        Skip to the content
      </a>
      <NavigationBar viewer={data} />
      <main id="main" ref={main} tabIndex={-1}>
        {wasHome && (
          <div hidden={!isHome}>
            <ErrorBoundary name="Your timeline" extent="screen">
              <Suspense fallback={<Loading name="posts" />}>
                <HomeScreen isShown={isHome} />
              </Suspense>
            </ErrorBoundary>
          </div>
        )}
        {route.name === "profile" && (
          <ErrorBoundary name="The profile" extent="screen" key={route.login}>
            <Suspense fallback={<Loading name="profile" />}>
              <ProfileScreen login={route.login} tab={route.tab} />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "post" && (
          <ErrorBoundary name="The post" extent="screen" key={route.id}>
            <Suspense fallback={<Loading name="post" />}>
              <PostScreen id={route.id} />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "search" && (
          <ErrorBoundary name="The search" extent="screen" key={route.text}>
            <Suspense fallback={<Loading name="posts" />}>
              <SearchScreen text={route.text} />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "notifications" && (
          <ErrorBoundary name="Your notifications" extent="screen">
            <Suspense fallback={<Loading name="notifications" />}>
              <NotificationsScreen />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "sessions" && (
          <ErrorBoundary name="Your sessions" extent="screen">
            <Suspense fallback={<Loading name="sessions" />}>
              <SessionsScreen />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "muted" && (
          <ErrorBoundary name="Your muted users" extent="screen">
            <Suspense fallback={<Loading name="muted users" />}>
              <MutedUsers />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "blocked" && (
          <ErrorBoundary name="Your blocked users" extent="screen">
            <Suspense fallback={<Loading name="blocked users" />}>
              <BlockedUsers />
            </Suspense>
          </ErrorBoundary>
        )}
        {route.name === "unknown" && (
          <div className="message">
            <title>Page not found · Fanline</title>
            <h1>This page does not exist</h1>
            <a href={homePath}>Go to your home timeline</a>
          </div>
        )}
      </main>
    </Quoting>
  );
}

function skip(event: React.MouseEvent, main: HTMLElement | null): void {
  event.preventDefault(); // the fragment of the address is the route
  main?.focus();
}

/** Begin each screen at the top with the focus on the content, and return to where the user was on a visited one. */
function useScrollPosition(hash: string, main: React.RefObject<HTMLElement | null>): void {
  const positions = useRef(new Map<string, number>());
  const isFirst = useRef(true);

  useEffect(() => {
    const known = positions.current;
    scrollTo(0, known.get(hash) ?? 0);
    if (!isFirst.current) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
    const remember = (): void => {
      if (location.hash === hash) known.set(hash, scrollY);
    };
    addEventListener("scroll", remember, { passive: true });
    return () => removeEventListener("scroll", remember);
  }, [hash, main]);
}
