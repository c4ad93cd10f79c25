import { ConnectionHandler, graphql, useRelayEnvironment } from "react-relay";
import { fetchPages } from "../live/fetchPages";
import { useLiveTimeline } from "../live/useLiveTimeline";
import type { useLiveProfileQuery } from "./__generated__/useLiveProfileQuery.graphql";

/** All pages of a user's timeline, each with the profile as it was then: a block empties the one and changes the other. */
export const query = graphql`
  query useLiveProfileQuery($login: String!, $count: Int!, $after: String) @raw_response_type {
    user(by: { login: $login }) {
      ...ProfileScreen_user
      ...ProfilePosts_user @arguments(count: $count, after: $after)
    }
  }
`;

/** What the tabs of a profile have in common. */
export interface ProfileProps {
  userId: string;
  login: string;
  timelineId: string;
  /** The cursor of the profile. */
  liveCursor: string | null | undefined;
  viewerId: string;
}

interface Options extends ProfileProps {
  /** Hold an entry of the timeline back that was added, and announce it. */
  hold?: (id: string, isAnnounced: boolean) => void;
}

/** Keep a user's timeline up to date, and the profile when one of the user and the viewer blocks the other. */
export function useLiveProfile({ userId, login, timelineId, liveCursor, viewerId, hold }: Options): void {
  const environment = useRelayEnvironment();
  const connection = ConnectionHandler.getConnectionID(timelineId, "ProfilePosts_entries");

  useLiveTimeline({
    id: timelineId,
    connection,
    viewerId,
    liveCursor,
    refetch: () =>
      fetchPages<useLiveProfileQuery>({
        environment,
        query,
        variables: { login },
        connection,
        pageInfo: ({ user }) => user?.timeline.entries?.pageInfo,
      }),
    concernsMore: (event) => event.__typename === "AuthorHidden" && event.userId === userId,
    hold,
  });
}
