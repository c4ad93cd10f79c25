// The fields that the benchmark's queries select, as in Fanline's schema.
export const typeDefs = /* GraphQL */ `
  scalar DateTime
  enum RelationshipState { YOU STRANGER FOLLOWING FOLLOWED_BY MUTUAL }
  input UserBy { id: ID login: String }
  type Query { viewer: Viewer, user(by: UserBy!): User }
  type Viewer { user: User!, homeTimeline: Timeline }
  type Relationship { state: RelationshipState! }
  type PageInfo { hasNextPage: Boolean!, endCursor: String }
  type TimelineEdge { cursor: String!, node: TimelineItem! }
  type TimelineConnection { edges: [TimelineEdge!]!, nodes: [TimelineItem!]!, pageInfo: PageInfo! }
  type Timeline { entries(first: Int): TimelineConnection }
  interface TimelineItem { id: ID!, author: User!, createdAt: DateTime! }
  type Post implements TimelineItem { id: ID!, author: User!, createdAt: DateTime!, text: String!, platform: String }
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
