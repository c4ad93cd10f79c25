import { graphql, readInlineData } from "react-relay";
import { useLiveList } from "./useLiveList";
import type { ListEvent, Options, Stream } from "./useLiveList";
import type { useLiveTimeline_event$key } from "./__generated__/useLiveTimeline_event.graphql";
import type { useLiveTimelineHomeSubscription } from "./__generated__/useLiveTimelineHomeSubscription.graphql";
import type { useLiveTimelineSubscription } from "./__generated__/useLiveTimelineSubscription.graphql";

const HOME: Stream<useLiveTimelineHomeSubscription> = {
  subscription: graphql`
    subscription useLiveTimelineHomeSubscription($after: String) {
      event: homeTimeline(after: $after) {
        ...useLiveTimeline_event
      }
    }
  `,
  field: "homeTimeline",
  eventOf: ({ event }) => read(event),
};

const OTHER: Stream<useLiveTimelineSubscription> = {
  subscription: graphql`
    subscription useLiveTimelineSubscription($id: ID!, $after: String) {
      event: timeline(timelineId: $id, after: $after) {
        ...useLiveTimeline_event
      }
    }
  `,
  field: "timeline",
  eventOf: ({ event }) => read(event),
};

function read(event: useLiveTimeline_event$key): ListEvent {
  return readInlineData(
    graphql`
      fragment useLiveTimeline_event on TimelineEvent @inline {
        __typename
        cursor
        ... on PostAdded {
          timelineEdge {
            cursor
            node {
              __typename
              id
              author {
                id
              }
              ...EntryCard_entry
            }
          }
        }
        ... on RepostAdded {
          timelineEdge {
            cursor
            node {
              __typename
              id
              author {
                id
              }
              ...EntryCard_entry
            }
          }
        }
        ... on PostRemoved {
          postId
        }
        ... on RepostRemoved {
          repostId
        }
        ... on AuthorRemoved {
          userId
        }
        ... on AuthorHidden {
          userId
        }
      }
    `,
    event,
  );
}

/** Keep the connection of a timeline up to date: the timeline with this id, or the home timeline. */
export function useLiveTimeline(options: Options): void {
  const isHome = options.id === undefined;
  useLiveList<useLiveTimelineHomeSubscription | useLiveTimelineSubscription>(isHome ? HOME : OTHER, options);
}
