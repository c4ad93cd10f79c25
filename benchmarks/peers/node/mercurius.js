// Mercurius with its JIT compiler and its loaders.
import Fastify from 'fastify'
import mercurius from 'mercurius'
import * as graph from './graph.js'
import { announce } from './process.js'
import { typeDefs } from './schema.js'

const keysOf = (queries) => queries.map(({ obj }) => obj.key)
const batched = (loader) => ({ loader, opts: { cache: false } })

const resolvers = {
  Query: {
    viewer: (_, __, { viewer }) => ({ key: viewer }),
    user: async (_, { by }) => {
      const key = await graph.idOfLogin(by.login)
      return key === null ? null : (await graph.users([key]))[0]
    },
  },
  Viewer: {
    user: async ({ key }) => (await graph.users([key]))[0],
    homeTimeline: ({ key }) => ({ kind: 'home', key }),
  },
  User: {
    timeline: ({ key }) => ({ kind: 'posts', key }),
  },
}

const loaders = {
  Timeline: {
    entries: batched((queries) => graph.postPages(queries.map(({ obj, params }) => ({ ...obj, ...params })))),
  },
  Post: {
    author: batched((queries) => graph.users(queries.map(({ obj }) => obj.authorKey))),
  },
  User: {
    followers: batched((queries) =>
      Promise.all(queries.map(({ obj, params }) => graph.followerPage(obj.key, params.first, graph.users))),
    ),
    followersCount: batched((queries) => graph.followersCounts(keysOf(queries))),
    followingCount: batched((queries) => graph.followingCounts(keysOf(queries))),
    relationship: batched((queries, { viewer }) => graph.relationships(viewer, keysOf(queries))),
  },
}

const app = Fastify({ logger: false })
app.register(mercurius, {
  schema: typeDefs,
  resolvers,
  loaders,
  jit: 1,
  graphiql: false,
  context: async (request) => ({ viewer: await graph.authenticate(request.headers.authorization) }),
})
app.get('/stats', () => graph.stats)
await app.listen({ host: '127.0.0.1', port: 0 })
announce(app.server.address().port)
