import { graphql, useLazyLoadQuery } from "react-relay";
import { PAGE } from "../live/fetchPages";
import { Composer } from "../post/Composer";
import { useAttempt } from "../ui/ErrorBoundary";
import { HomeFeed } from "./HomeFeed";
import type { HomeScreenQuery } from "./__generated__/HomeScreenQuery.graphql";

export function HomeScreen({ isShown }: { isShown: boolean }) {
  const { viewer } = useLazyLoadQuery<HomeScreenQuery>(
    graphql`
      query HomeScreenQuery($count: Int!) {
        viewer {
          user {
            ...Composer_viewer
          }
          ...HomeFeed_viewer @arguments(count: $count)
        }
      }
    `,
    { count: PAGE },
    { fetchKey: useAttempt() },
  );
  if (!viewer) return null; // the session has just ended
  return (
    <>
      {isShown && <title>Home · Fanline</title>}
      <h1 className="visually-hidden">Home</h1>
      <Composer viewer={viewer.user} />
      <HomeFeed viewer={viewer} isShown={isShown} />
    </>
  );
}
