// The fields that the benchmark's queries select, as in Fanline's schema.
export const typeDefs = /* GraphQL */ `
  scalar DateTime
  enum RelationshipState { YOU STRANGER FOLLOWING FOLLOWED_BY MUTUAL }
  input UserBy { id: ID login: String }
  type Query { viewer: Viewer, user(by: UserBy!): User }
  type Viewer { user: User!, homeTimeline: Timeline }
  type Relationship { state: RelationshipState! }
  type PageInfo { hasNextPage: Boolean!, endCursor: String }
  type PostEdge { cursor: String!, node: Post! }
  type PostConnection { edges: [PostEdge!]!, nodes: [Post!]!, pageInfo: PageInfo! }
  type Timeline { posts(first: Int): PostConnection }
  type Post { id: ID!, text: String!, createdAt: DateTime!, platform: String, author: User! }
  type FollowEdge { cursor: String!, node: User! }
  type FollowConnection { edges: [FollowEdge!]!, nodes: [User!]!, pageInfo: PageInfo! }
  type User {
    id: ID!
    login: String!
    name: String!
    followersCount: Int!
    followingCount: Int!
    relationship: Relationship
    followers(first: Int): FollowConnection
    timeline: Timeline!
  }
`
