import { graphql } from "relay-runtime";

graphql`
  query mistakesCursorQuery($first: Int!, $after: String) {
    viewer {
      homeTimeline {
        id
        entries(first: $first, after: $after) @connection(key: "mistakes_entries") {
          __id
          edges {
            node {
              id
            }
          }
        }
      }
    }
  }
`;

graphql`
  query mistakesConnectionQuery($first: Int!, $after: String) {
    viewer {
      homeTimeline {
        id
        liveCursor(first: $first, after: $after)
        entries(first: $first, after: $after) @connection(key: "mistakes_entries") {
          edges {
            node {
              id
            }
          }
        }
      }
    }
  }
`;
