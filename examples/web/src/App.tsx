import { Suspense } from "react";
import { RelayEnvironmentProvider } from "react-relay";
import { useConnection } from "./session/connection";
import { Session } from "./session/Session";
import { ErrorBoundary } from "./ui/ErrorBoundary";
import { Loading } from "./ui/Loading";
import { Toasts } from "./ui/Toasts";

/** The key gives each session its own components, so that no state of one user is left for the next. */
export function App() {
  const { environment, number } = useConnection();
  return (
    <RelayEnvironmentProvider environment={environment} key={number}>
      <Toasts>
        <ErrorBoundary name="Fanline" extent="page">
          <Suspense fallback={<main><Loading name="Fanline" /></main>}>
            <Session />
          </Suspense>
        </ErrorBoundary>
      </Toasts>
    </RelayEnvironmentProvider>
  );
}
