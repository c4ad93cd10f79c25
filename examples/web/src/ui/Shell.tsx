import { useEffect, useRef, useState } from "react";
import { graphql, useFragment } from "react-relay";
import { HomeScreen } from "../home/HomeScreen";
import { useNewFollowers } from "../live/useNewFollowers";
import { Quoting } from "../post/Quoting";
import { NavigationBar } from "./NavigationBar";
import { parse, useHash } from "./router";
import { Part, Screen } from "./Screen";
import type { Shell_viewer$key } from "./__generated__/Shell_viewer.graphql";

/** The frame of all screens. Behind the others, the home timeline stays live and keeps its scroll position. */
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
            <Part name="Your timeline" loads="posts">
              <HomeScreen isShown={isHome} />
            </Part>
          </div>
        )}
        <Screen route={route} />
      </main>
    </Quoting>
  );
}

function skip(event: React.MouseEvent, main: HTMLElement | null): void {
  event.preventDefault(); // the fragment of the address is the route
  main?.focus();
}

/** Begin each screen at the top with the focus on the content, and restore the scroll position on a visited one. */
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
