import { type ClientHttp2Session, connect as connectHttp2, constants } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { type Scale, type Scenario, SESSION_BYTES } from '../harness/scenario.ts'
import { bytesInUse } from '../harness/snapshot.ts'
import { BASIN, type World } from '../harness/world.ts'

const PATH = '/v1/streams/polled/records?wait=60'

/**
 * Begins this many long polls. The returned function abandons them and resolves when the clients have
 * noticed.
 */
type Polls = (world: World, count: number) => (() => Promise<unknown>) | Promise<() => Promise<unknown>>

const each = <Item>(count: number, create: (index: number) => Item) =>
  Array.from({ length: count }, (_, index) => create(index))

/** Some have signals of their own, some share one, and some have none and end by themselves. */
const inProcess: Polls = (world, count) => {
  const stream = world.stream('polled')
  const controller = new AbortController()
  const own = each(count, () => new AbortController())
  const polls = own.map(({ signal }, index) => {
    const options = [{ signal }, { signal: controller.signal }, {}][index % 3]!
    return stream.readBatch({ tailOffset: 0, waitMs: 60_000 }, { ...options, create: true }).catch(() => {})
  })
  return async () => {
    for (const controller of own) controller.abort()
    controller.abort()
    await world.clock.advance('60s')
    await Promise.all(polls)
  }
}

const atHandler: Polls = (world, count) => {
  const controllers = each(count, () => new AbortController())
  const polls = controllers.map(({ signal }) => world.handler(world.request('GET', PATH, { signal })))
  return async () => {
    for (const controller of controllers) controller.abort()
    await Promise.all(polls)
  }
}

/** Over connections that are closed, reset or half-closed. */
const onSockets: Polls = async (world, count) => {
  const head = `GET ${PATH} HTTP/1.1\r\nhost: localhost\r\nsvc-basin: ${BASIN}\r\n\r\n`
  const sockets = each(count, (): Socket => {
    const socket = connect({ port: world.server.port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => {})
    socket.write(head)
    return socket
  })
  return async () => {
    for (const [index, socket] of sockets.entries()) {
      if (index % 3 === 0) socket.destroy()
      else if (index % 3 === 1) socket.resetAndDestroy()
      else socket.end()
    }
    await world.until(() => world.hw.stats().waitingReads === 0)
    for (const socket of sockets) socket.destroy()
  }
}

/** Over streams of one connection, which are reset one by one or with the connection. */
const onHttp2: Polls = async (world, count) => {
  const session: ClientHttp2Session = connectHttp2(world.server.url)
  session.on('error', () => {})
  const requests = each(count, () => {
    const request = session.request({ ':path': PATH, 'svc-basin': BASIN })
    request.on('error', () => {})
    return request
  })
  return async () => {
    for (const request of requests.slice(count / 2)) request.close(constants.NGHTTP2_CANCEL)
    await world.until(() => world.hw.stats().waitingReads === count / 2)
    session.destroy()
  }
}

/** Runs long polls, `atOnce` at a time, whose clients leave before a record arrives. */
function abandonedPolls(
  name: string,
  polls: Polls,
  atOnce: number,
  pollBytes: number,
  inTest: number,
): Scenario {
  async function round(world: World, { many }: Scale): Promise<void> {
    await world.append(world.stream('polled'), 'x', 1)
    for (let left = many; left > 0; left -= atOnce) {
      const count = Math.min(left, atOnce)
      const abandon = await polls(world, count)
      await world.until(() => world.hw.stats().waitingReads === count)
      world.sample(await bytesInUse())
      await abandon()
      await world.until(() => world.hw.stats().openSessions === 0)
    }
  }
  return {
    name,
    round,
    budget: ({ many }) => Math.min(many, atOnce) * pollBytes,
    isOfAnyStorage: true,
    scales: { test: { rounds: 1, many: inTest }, campaign: { rounds: 2, many: 10_000 } },
  }
}

export const ABANDONED_POLLS: readonly Scenario[] = [
  abandonedPolls('abandoned long polls', inProcess, 10_000, SESSION_BYTES.inProcess, 1_000),
  abandonedPolls('abandoned long polls, over HTTP', atHandler, 10_000, SESSION_BYTES.response, 500),
  abandonedPolls('abandoned long polls, on sockets', onSockets, 500, SESSION_BYTES.connection, 300),
  abandonedPolls('abandoned long polls, over HTTP/2', onHttp2, 1_000, SESSION_BYTES.connection, 300),
]
