import { Children, useEffect, useEffectEvent, useRef, useState } from "react";
import type { ReactNode } from "react";
import { Loading } from "./Loading";

const AHEAD = 1_200;
const PAUSE = 100;

interface Props {
  name: string;
  children: ReactNode;
  empty: ReactNode;
  hasNext: boolean;
  isLoading: boolean;
  loadNext: (onComplete: (problem: Error | null) => void) => void;
}

/** A list that loads its next page before its end is on the screen. */
export function EndlessList({ name, children, empty, hasNext, isLoading, loadNext }: Props) {
  const [hasFailed, setHasFailed] = useState(false);
  // Relay ignores a call while the query of the list is running, and reports it as completed: the list checks again.
  const [calls, setCalls] = useState(0);
  const end = useRef<HTMLDivElement>(null);
  const count = Children.count(children);
  const canLoad = hasNext && !isLoading && !hasFailed;

  const load = useEffectEvent(() =>
    loadNext((problem) => {
      setHasFailed(problem !== null);
      setTimeout(() => setCalls((calls) => calls + 1), PAUSE);
    }),
  );

  useEffect(() => {
    if (!canLoad) return undefined;
    // Chromium's IntersectionObserver misses what moves while items with `content-visibility` get their sizes.
    const look = (): void => {
      if (end.current && end.current.getBoundingClientRect().top < innerHeight + AHEAD) load();
    };
    look();
    addEventListener("scroll", look, { passive: true });
    addEventListener("resize", look);
    return () => {
      removeEventListener("scroll", look);
      removeEventListener("resize", look);
    };
  }, [canLoad, count, calls]);

  if (count === 0 && !hasNext) return <div className="message">{empty}</div>;
  return (
    <>
      <ol className="list" aria-label={name} aria-busy={isLoading}>
        {Children.map(children, (child) => (
          <li>{child}</li>
        ))}
      </ol>
      <div ref={end}>
        {isLoading && <Loading name={`more ${name}`} rows={2} />}
        {hasFailed && (
          <div className="message" role="alert">
            <p>More {name} could not be loaded.</p>
            <button className="button" onClick={() => setHasFailed(false)}>
              Try again
            </button>
          </div>
        )}
      </div>
    </>
  );
}
