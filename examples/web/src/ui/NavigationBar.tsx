import type { SubmitEvent } from "react";
import { graphql, useFragment } from "react-relay";
import { AccountMenu } from "../account/AccountMenu";
import { NotificationsLink } from "../notifications/NotificationsLink";
import { ConnectionNotice } from "./ConnectionNotice";
import { textOf } from "./formData";
import { Logo, SearchIcon } from "./icons";
import { homePath, profilePath, searchPath } from "./router";
import { ThemeButton } from "./ThemeButton";
import type { NavigationBar_viewer$key } from "./__generated__/NavigationBar_viewer.graphql";

export function NavigationBar({ viewer }: { viewer: NavigationBar_viewer$key }) {
  const data = useFragment(
    graphql`
      fragment NavigationBar_viewer on User {
        ...AccountMenu_viewer
      }
    `,
    viewer,
  );

  function open(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault();
    const text = textOf(new FormData(event.currentTarget), "text").trim();
    if (/^@./.test(text)) location.hash = profilePath(text.slice(1));
    else if (text) location.hash = searchPath(text);
    event.currentTarget.reset();
  }

  return (
    <header className="bar">
      <nav aria-label="Main">
        <a className="brand" href={homePath} aria-label="Fanline, home">
          <Logo />
          <span>Fanline</span>
        </a>
        <form className="search" role="search" onSubmit={open}>
          <SearchIcon />
          <input
            name="text"
            aria-label="Search for posts and users, or go to a @user"
            placeholder="Search"
            autoCapitalize="none"
            autoComplete="off"
            enterKeyHint="search"
            spellCheck={false}
          />
        </form>
        <NotificationsLink />
        <ThemeButton />
        <AccountMenu viewer={data} />
      </nav>
      <ConnectionNotice />
    </header>
  );
}
