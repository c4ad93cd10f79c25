import { Suspense } from "react";
import type { ReactNode } from "react";
import { ErrorBoundary } from "./ErrorBoundary";
import { lazily } from "./lazily";
import { Loading } from "./Loading";
import { homePath } from "./router";
import type { Route } from "./router";

const BlockedUsers = lazily(async () => (await import("../account/BlockedUsers")).BlockedUsers);
const ListScreen = lazily(async () => (await import("../lists/ListScreen")).ListScreen);
const ListsScreen = lazily(async () => (await import("../lists/ListsScreen")).ListsScreen);
const MutedUsers = lazily(async () => (await import("../account/MutedUsers")).MutedUsers);
const NotificationsScreen = lazily(async () => (await import("../notifications/NotificationsScreen")).NotificationsScreen);
const PostScreen = lazily(async () => (await import("../post/PostScreen")).PostScreen);
const ProfileScreen = lazily(async () => (await import("../profile/ProfileScreen")).ProfileScreen);
const SearchScreen = lazily(async () => (await import("../search/SearchScreen")).SearchScreen);
const SessionsScreen = lazily(async () => (await import("../account/SessionsScreen")).SessionsScreen);

/** All screens except the home timeline. The code of each is loaded when it is first shown. */
export function Screen({ route }: { route: Route }) {
  switch (route.name) {
    case "profile":
      return (
        <Part name="The profile" loads="profile" key={`@${route.login}`}>
          <ProfileScreen login={route.login} tab={route.tab} />
        </Part>
      );
    case "post":
      return (
        <Part name="The post" loads="post" key={`post/${route.id}`}>
          <PostScreen id={route.id} />
        </Part>
      );
    case "search":
      return (
        <Part name="The search" loads="posts" key={`search/${route.text}`}>
          <SearchScreen text={route.text} />
        </Part>
      );
    case "notifications":
      return (
        <Part name="Your notifications" loads="notifications" key="notifications">
          <NotificationsScreen />
        </Part>
      );
    case "lists":
      return (
        <Part name="Your lists" loads="lists" key="lists">
          <ListsScreen />
        </Part>
      );
    case "list":
      return (
        <Part name="The list" loads="list" key={`list/${route.id}`}>
          <ListScreen id={route.id} tab={route.tab} />
        </Part>
      );
    case "sessions":
      return (
        <Part name="Your sessions" loads="sessions" key="sessions">
          <SessionsScreen />
        </Part>
      );
    case "muted":
      return (
        <Part name="Your muted users" loads="muted users" key="muted">
          <MutedUsers />
        </Part>
      );
    case "blocked":
      return (
        <Part name="Your blocked users" loads="blocked users" key="blocked">
          <BlockedUsers />
        </Part>
      );
    case "unknown":
      return (
        <div className="message">
          <title>Page not found · Fanline</title>
          <h1>This page does not exist</h1>
          <a href={homePath}>Go to your home timeline</a>
        </div>
      );
    case "home":
      return null;
  }
}

/** What is shown while a screen is loading, or if it cannot be loaded. */
export function Part({ name, loads, children }: { name: string; loads: string; children: ReactNode }) {
  return (
    <ErrorBoundary name={name} extent="screen">
      <Suspense fallback={<Loading name={loads} />}>{children}</Suspense>
    </ErrorBoundary>
  );
}
