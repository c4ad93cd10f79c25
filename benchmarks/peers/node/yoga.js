// GraphQL Yoga with DataLoader, and its own cache of parsed and validated documents.
import { createServer } from 'node:http'
import DataLoader from 'dataloader'
import { createSchema, createYoga } from 'graphql-yoga'
import * as graph from './graph.js'
import { announce } from './process.js'
import { typeDefs } from './schema.js'

const resolvers = {
  Query: {
    viewer: (_, __, { viewer }) => ({ key: viewer }),
    user: async (_, { by }, { users }) => {
      const key = await graph.idOfLogin(by.login)
      return key === null ? null : users.load(key)
    },
  },
  Viewer: {
    user: ({ key }, _, { users }) => users.load(key),
    homeTimeline: ({ key }) => ({ kind: 'home', key }),
  },
  Timeline: {
    entries: async (timeline, { first }, { posts }) =>
      (await graph.postPages([{ ...timeline, first }], (keys) => posts.loadMany(keys)))[0],
  },
  Post: {
    author: ({ authorKey }, _, { users }) => users.load(authorKey),
  },
  User: {
    timeline: ({ key }) => ({ kind: 'posts', key }),
    followers: ({ key }, { first }, { users }) => graph.followerPage(key, first, (keys) => users.loadMany(keys)),
    followersCount: ({ key }, _, { followersCounts }) => followersCounts.load(key),
    followingCount: ({ key }, _, { followingCounts }) => followingCounts.load(key),
    relationship: ({ key }, _, { relationships }) => relationships.load(key),
  },
}

const yoga = createYoga({
  schema: createSchema({ typeDefs, resolvers }),
  graphiql: false,
  landingPage: false,
  logging: false,
  parserAndValidationCache: true,
  context: async ({ request }) => {
    const viewer = await graph.authenticate(request.headers.get('authorization'))
    return {
      viewer,
      users: new DataLoader(graph.users),
      posts: new DataLoader(graph.posts),
      followersCounts: new DataLoader(graph.followersCounts),
      followingCounts: new DataLoader(graph.followingCounts),
      relationships: new DataLoader((keys) => graph.relationships(viewer, keys)),
    }
  },
})

const server = createServer((request, response) =>
  request.url === '/stats'
    ? response.setHeader('content-type', 'application/json').end(JSON.stringify(graph.stats))
    : yoga(request, response),
)
server.listen(0, '127.0.0.1', () => announce(server.address().port))
