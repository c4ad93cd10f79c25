// Followers, followings and posts.
import { graphql } from "relay-runtime";

graphql`
  fragment Counts_user on User {
    followersCount
    followingCount
    ...Counts_posts
  }
`;

graphql`
  fragment Counts_posts on User {
    postsCount
  }
`;
