import type { SubmitEvent } from "react";
import { graphql, useFragment } from "react-relay";
import { AccountMenu } from "../account/AccountMenu";
import { ConnectionNotice } from "./ConnectionNotice";
import { textOf } from "./formData";
import { Logo, SearchIcon } from "./icons";
import { homePath, profilePath } from "./router";
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
    const login = textOf(new FormData(event.currentTarget), "login").trim().replace(/^@/, "");
    if (login) location.hash = profilePath(login);
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
            name="login"
            aria-label="Go to a user"
            placeholder="User name"
            autoCapitalize="none"
            autoComplete="off"
            enterKeyHint="go"
            spellCheck={false}
          />
        </form>
        <ThemeButton />
        <AccountMenu viewer={data} />
      </nav>
      <ConnectionNotice />
    </header>
  );
}
