// A place on a map.
import { graphql } from "relay-runtime";

graphql`
  fragment MapPin_location on Location {
    latitude
    longitude
  }
`;
