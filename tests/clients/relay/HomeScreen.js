// The home screen: everything below is put together here.
import { graphql } from "relay-runtime";

export const query = graphql`
  query HomeScreenQuery($count: Int = 20, $after: String) {
    viewer {
      ...HomeScreen_viewer @arguments(count: $count, after: $after)
    }
  }
`;

graphql`
  fragment HomeScreen_viewer on Viewer @argumentDefinitions(count: { type: "Int" }, after: { type: "String" }) {
    user {
      ...NavigationBar_viewer
      ...Composer_viewer
      ...Sidebar_viewer
    }
    ...HomeFeed_viewer @arguments(count: $count, after: $after)
  }
`;
