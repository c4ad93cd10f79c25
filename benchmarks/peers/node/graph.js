// The reads of the social graph for Node servers: keys, cursors, and one function per batched look-up.
// Commands for many keys are one pipeline. ioredis combines single commands of the same tick.
import { createVerifier } from 'fast-jwt'
import { Redis } from 'ioredis'

const EPOCH = Date.UTC(2020, 0, 1)
const SEQUENCES = 4096

export const stats = { round_trips: 0 }
export const redis = new Redis(process.env.STORE, { enableAutoPipelining: true })
redis.on('connect', () => {
  const write = redis.stream.write
  redis.stream.write = function (...rest) {
    stats.round_trips++
    return write.apply(this, rest)
  }
})

const verify = createVerifier({ key: process.env.KEY, algorithms: ['HS256'], cache: 1000 })

/** Returns the viewer of a valid token with a live session. Throws otherwise. */
export async function authenticate(authorization) {
  const { sub, sid } = verify((authorization ?? '').replace(/^Bearer /, ''))
  const ends = await redis.hget(`session:{${sub}}`, sid)
  if (ends === null || Number(ends) <= Date.now() / 1000) throw new Error('The session has ended: log in again.')
  return sub
}

const encode = (text) => Buffer.from(text).toString('base64url')
const cursor = (kind, number) => `${kind}-${Number(number).toString(16).padStart(14, '0')}`

/** An object with a global id. Mercurius' loaders compare objects by their JSON; here the id is enough. */
class Node {
  constructor(kind, key) {
    this.key = key
    this.id = encode(`${kind}:${key}`)
  }

  toJSON() {
    return this.id
  }
}

class Person extends Node {
  constructor(key, login, name) {
    super('User', key)
    this.login = login
    this.name = name
  }
}

class Post extends Node {
  constructor(key, author, text, platform) {
    super('Post', key)
    this.authorKey = author
    this.text = text
    this.platform = platform
    this.createdAt = new Date(EPOCH + Math.floor(Number(key) / SEQUENCES)).toISOString()
  }

  /** The type of this `TimelineItem`. */
  get __typename() {
    return 'Post'
  }
}

/** Sends one pipeline and returns its replies. Throws the first error. */
async function pipelined(commands) {
  const replies = await redis.pipeline(commands).exec()
  return replies.map(([error, reply]) => {
    if (error) throw error
    return reply
  })
}

/** Looks up each distinct key once and returns the answers in the order of the keys. */
async function each(keys, look) {
  const once = [...new Set(keys)]
  const found = await look(once)
  if (once.length === keys.length) return found
  const byKey = new Map(once.map((key, place) => [key, found[place]]))
  return keys.map((key) => byKey.get(key))
}

export const users = (keys) =>
  each(keys, async (once) => {
    const rows = await pipelined(once.map((key) => ['hmget', `user:{${key}}`, 'login', 'name']))
    return rows.map(([login, name], place) => (login === null ? null : new Person(once[place], login, name)))
  })

export async function posts(keys) {
  const rows = await pipelined(keys.map((key) => ['hmget', `post:{${key}}`, 'author', 'text', 'platform']))
  return rows.map(([author, text, platform], place) =>
    author === null ? null : new Post(keys[place], author, text, platform),
  )
}

const counts = (prefix) => (keys) =>
  each(keys, (once) => pipelined(once.map((key) => ['zcard', `${prefix}:{${key}}`])))

export const followersCounts = counts('followers')
export const followingCounts = counts('following')

export const relationships = (viewer, keys) =>
  each(keys, async (once) => {
    const [forth, back] = await pipelined([
      ['zmscore', `following:{${viewer}}`, ...once],
      ['zmscore', `followers:{${viewer}}`, ...once],
    ])
    return once.map((key, place) => ({ state: state(viewer === key, forth[place] !== null, back[place] !== null) }))
  })

function state(self, following, followedBy) {
  if (self) return 'YOU'
  if (following) return followedBy ? 'MUTUAL' : 'FOLLOWING'
  return followedBy ? 'FOLLOWED_BY' : 'STRANGER'
}

export const idOfLogin = (login) => redis.hget(`login:{${login}}`, 'user')

/** Returns one page of posts for each `{ kind, key, first }`. `load` looks up the posts. */
export async function postPages(asked, load = posts) {
  const lists = await pipelined(asked.map(({ kind, key, first }) => ['zrange', `${kind}:{${key}}`, 0, first, 'REV']))
  const keys = lists.map((list) => list.filter((key) => key !== 'f'))
  const found = await load(keys.flat())
  let start = 0
  return asked.map(({ first }, place) => {
    const nodes = found.slice(start, (start += keys[place].length)).filter((post) => post !== null)
    const edges = nodes.slice(0, first).map((node) => ({ cursor: cursor('post', node.key), node }))
    return page(edges, nodes.length > first)
  })
}

/** Returns a page of followers. `load` looks up the users. */
export async function followerPage(user, first, load) {
  const found = await redis.zrange(`followers:{${user}}`, 0, first, 'REV', 'WITHSCORES')
  const keys = found.filter((_, place) => place % 2 === 0)
  const nodes = await load(keys.slice(0, first))
  const edges = nodes.map((node, place) => ({ cursor: cursor('follow', found[2 * place + 1]), node }))
  return page(edges, keys.length > first)
}

const page = (edges, hasNextPage) => ({
  edges,
  nodes: edges.map((edge) => edge.node),
  pageInfo: { hasNextPage, endCursor: edges.at(-1)?.cursor ?? null },
})
