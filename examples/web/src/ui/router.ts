import { useSyncExternalStore } from "react";

export type Tab = "posts" | "followers" | "following";
export type ListTab = "posts" | "members";

export type Route =
  | { name: "home" }
  | { name: "profile"; login: string; tab: Tab }
  | { name: "post"; id: string }
  | { name: "search"; text: string }
  | { name: "notifications" }
  | { name: "lists" }
  | { name: "list"; id: string; tab: ListTab }
  | { name: "sessions" }
  | { name: "muted" }
  | { name: "blocked" }
  | { name: "unknown" };

const PROFILE = /^#\/@([^/]+)(?:\/(followers|following))?$/;
const SEARCH = /^#\/search\/(.+)$/;
const LIST = /^#\/list\/([^/]+)(?:\/(members))?$/;
const POST = /^#\/post\/([^/]+)$/;

/** Routes are in the fragment of the address, so that any web server can serve the app. */
export const homePath = "#/";
export const notificationsPath = "#/notifications";
export const listsPath = "#/lists";
export const sessionsPath = "#/sessions";
export const mutedPath = "#/muted";
export const blockedPath = "#/blocked";

export function profilePath(login: string, tab: Tab = "posts"): string {
  return `#/@${encodeURIComponent(login)}${tab === "posts" ? "" : `/${tab}`}`;
}

export function postPath(id: string): string {
  return `#/post/${encodeURIComponent(id)}`;
}

export function listPath(id: string, tab: ListTab = "posts"): string {
  return `#/list/${encodeURIComponent(id)}${tab === "posts" ? "" : `/${tab}`}`;
}

export function searchPath(text: string): string {
  return `#/search/${encodeURIComponent(text)}`;
}

export function parse(hash: string): Route {
  if (hash === "" || hash === "#" || hash === homePath) return { name: "home" };
  if (hash === notificationsPath) return { name: "notifications" };
  if (hash === listsPath) return { name: "lists" };
  if (hash === sessionsPath) return { name: "sessions" };
  if (hash === mutedPath) return { name: "muted" };
  if (hash === blockedPath) return { name: "blocked" };
  const [, login, tab] = PROFILE.exec(hash) ?? [];
  if (login) return { name: "profile", login: decode(login).toLowerCase(), tab: asTab(tab) };
  const [, list, part] = LIST.exec(hash) ?? [];
  if (list) return { name: "list", id: decode(list), tab: part === "members" ? part : "posts" };
  const [, post] = POST.exec(hash) ?? [];
  if (post) return { name: "post", id: decode(post) };
  const [, text] = SEARCH.exec(hash) ?? [];
  if (text) return { name: "search", text: decode(text) };
  return { name: "unknown" };
}

function asTab(text: string | undefined): Tab {
  return text === "followers" || text === "following" ? text : "posts";
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // such as a % that the user has typed
  }
}

export function useHash(): string {
  return useSyncExternalStore(subscribe, () => location.hash);
}

function subscribe(listener: () => void): () => void {
  addEventListener("hashchange", listener);
  return () => removeEventListener("hashchange", listener);
}
