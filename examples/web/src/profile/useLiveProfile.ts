import { ConnectionHandler, graphql, useRelayEnvironment } from "react-relay";
import { fetchPages } from "../live/fetchPages";
import { useLiveTimeline } from "../live/useLiveTimeline";
import type { useLiveProfileQuery } from "./__generated__/useLiveProfileQuery.graphql";

/** All pages of a user's timeline, each with the profile: a block empties the timeline and changes the profile. */
export const query = graphql`
  query useLiveProfileQuery($login: String!, $count: Int!, $after: String) @raw_response_type {
    user(by: { login: $login }) {
      ...ProfileScreen_user
      ...ProfilePosts_user @arguments(count: $count, after: $after)
    }
  }
`;

/** The properties that all tabs of a profile have. */
export interface ProfileProps {
  userId: string;
  login: string;
  timelineId: string;
  /** The cursor of the profile. */
  liveCursor: string | null | undefined;
  viewerId: string;
}

interface Options extends ProfileProps {
  /** Hold back an added entry of the timeline, and announce it. */
  hold?: (id: string, isAnnounced: boolean) => void;
}

/** Keep a user's timeline up to date, and the profile when the user or the viewer blocks the other. */
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
