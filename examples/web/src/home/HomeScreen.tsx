import { graphql, useLazyLoadQuery } from "react-relay";
import { PAGE } from "../live/useLiveHome";
import { Composer } from "../post/Composer";
import { useAttempt } from "../ui/ErrorBoundary";
import { HomeFeed } from "./HomeFeed";
import type { HomeScreenQuery } from "./__generated__/HomeScreenQuery.graphql";

export function HomeScreen({ isShown }: { isShown: boolean }) {
  const { viewer } = useLazyLoadQuery<HomeScreenQuery>(
    graphql`
      query HomeScreenQuery($count: Int!) {
        viewer {
          homeTimeline {
            liveCursor
          }
          ...Composer_viewer
          ...HomeFeed_viewer @arguments(count: $count)
        }
      }
    `,
    { count: PAGE },
    { fetchKey: useAttempt() },
  );
  if (!viewer?.homeTimeline) return null; // the session has just ended
  return (
    <>
      {isShown && <title>Home · Fanline</title>}
      <h1 className="visually-hidden">Home</h1>
      <Composer viewer={viewer} />
      <HomeFeed viewer={viewer} liveCursor={viewer.homeTimeline.liveCursor} isShown={isShown} />
    </>
  );
}
