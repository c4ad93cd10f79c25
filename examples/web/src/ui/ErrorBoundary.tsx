import { Component, createContext, Fragment, useContext } from "react";
import type { ReactNode } from "react";
import { Refusal } from "../session/refusal";
import { MissingCode, reloadPage } from "./lazily";

interface Props {
  /** What is loaded, as the beginning of a sentence. */
  name: string;
  /** How much of the page the boundary covers: a part below a heading, the screen, or everything. */
  extent?: "part" | "screen" | "page";
  /** What is shown instead of a message where there is no room for one. */
  fallback?: ReactNode;
  children: ReactNode;
}

interface State {
  problem: Error | undefined;
  attempt: number;
}

const Attempt = createContext(0);

/** Return the number of the attempt to show the content. With it as their `fetchKey`, queries are sent again. */
export function useAttempt(): number {
  return useContext(Attempt);
}

/** The failures in all boundaries: Relay keeps the failure of a query, even for a boundary that is rendered later. */
let failures = 0;

/**
 * Show an error of the content, with a button that renders the content again. When the network is back, the content is
 * rendered again automatically.
 */
export class ErrorBoundary extends Component<Props, State> {
  override state: State = { problem: undefined, attempt: failures };

  static getDerivedStateFromError(problem: Error): Partial<State> {
    return { problem };
  }

  override componentDidMount(): void {
    addEventListener("online", this.retry);
  }

  override componentWillUnmount(): void {
    removeEventListener("online", this.retry);
  }

  override componentDidCatch(): void {
    failures++;
  }

  readonly retry = (): void => {
    const { problem } = this.state;
    if (problem instanceof MissingCode) void reloadPage();
    else if (problem) this.setState({ problem: undefined, attempt: failures });
  };

  override render(): ReactNode {
    const { problem, attempt } = this.state;
    const { name, extent = "part", fallback, children } = this.props;
    if (!problem) {
      return (
        <Attempt value={attempt}>
          <Fragment key={attempt}>{children}</Fragment>
        </Attempt>
      );
    }
    if (fallback) return fallback;
    const Heading = extent === "part" ? "h2" : "h1";
    const message = (
      <div className="message" role="alert">
        <Heading>{name} could not be loaded</Heading>
        {problem instanceof Refusal ? <p>{problem.message}</p> : <Outage onRetry={this.retry} />}
      </div>
    );
    return extent === "page" ? <main>{message}</main> : message;
  }
}

function Outage({ onRetry }: { onRetry: () => void }) {
  return (
    <>
      <p>{navigator.onLine ? "The server does not answer, or refused the request." : "You are offline."}</p>
      <button className="button" onClick={onRetry}>
        Try again
      </button>
    </>
  );
}
