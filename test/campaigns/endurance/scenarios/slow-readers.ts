import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import type { Scale, Scenario } from '../harness/scenario.ts'
import { bytesInUse } from '../harness/snapshot.ts'
import { BASIN, type World } from '../harness/world.ts'

const MIB = 1_048_576
const RECORD_BYTES = 32_768
const RECORDS = 4
/** More than all buffers between the two ends of a connection. */
const APPENDED_BYTES = 48 * MIB
const APPENDS = APPENDED_BYTES / (RECORDS * RECORD_BYTES)
const SAMPLES = 6
const PATH = '/v1/streams/slow/records?seq_num='

/** A reader that receives one batch and then stops reading. The returned function ends it. */
type Stuck = (world: World, seqNum: number) => Promise<() => void>

const STUCK_IN_PROCESS: readonly Stuck[] = [
  async (world, seqNum) => {
    const cursor = await world.stream('slow').openCursor({ seqNum }, { heartbeats: true, create: true })
    await cursor!.next()
    return () => cursor!.close()
  },
  async (world, seqNum) => {
    const iterator = world
      .stream('slow')
      .follow({ seqNum }, { signal: world.lasting })
      [Symbol.asyncIterator]()
    // It received one batch and returns only to leave.
    const first = iterator.next()
    return () => void first.then(() => iterator.return())
  },
]

const STUCK_AT_HANDLER: readonly Stuck[] = [
  { accept: 'text/event-stream' },
  { 'content-type': 'svcs/proto' },
  { 'content-type': 'svcs/proto', 'accept-encoding': 'gzip' },
].map((headers) => async (world, seqNum) => {
  const response = await world.handler(world.request('GET', `${PATH}${seqNum}`, { headers }))
  const reader = response.body!.getReader()
  await reader.read()
  return () => void reader.cancel()
})

const STUCK_SOCKETS: readonly Stuck[] = [
  async (world, seqNum) => {
    const socket: Socket = connect({ port: world.server.port, host: '127.0.0.1' })
    socket.on('error', () => {})
    const head = `GET ${PATH}${seqNum} HTTP/1.1\r\nhost: localhost\r\nsvc-basin: ${BASIN}\r\naccept: text/event-stream\r\n\r\n`
    socket.write(head)
    await new Promise<void>((resolve) => socket.once('data', () => resolve()))
    socket.pause()
    return () => void socket.destroy()
  },
  async (world, seqNum) => {
    const session: ClientHttp2Session = connectHttp2(world.server.url)
    session.on('error', () => {})
    const request = session.request({
      ':path': `${PATH}${seqNum}`,
      'svc-basin': BASIN,
      'content-type': 'svcs/proto',
    })
    request.on('error', () => {})
    await new Promise<void>((resolve) => request.once('data', () => resolve()))
    request.pause()
    return () => void session.destroy()
  },
]

/** Readers that stopped reading, while much more is appended than may be buffered for them. */
function slowReaders(name: string, stuck: readonly Stuck[], readerBytes: number): Scenario {
  async function round(world: World, { many }: Scale): Promise<void> {
    const stream = world.stream('slow')
    const { seqNum } = await stream.checkTail().catch(() => ({ seqNum: 0 }))
    const opening = Array.from({ length: many }, (_, index) => stuck[index % stuck.length]!(world, seqNum))
    const batch = Array.from({ length: RECORDS }, () => 'x'.repeat(RECORD_BYTES))
    await world.append(stream, batch, RECORDS * RECORD_BYTES)
    const ends = await Promise.all(opening)
    for (let append = 1; append < APPENDS; append++) {
      await world.append(stream, batch, RECORDS * RECORD_BYTES)
      if (append % (APPENDS / SAMPLES) === 0) world.sample(await bytesInUse())
    }
    for (const end of ends) end()
    const { seqNum: tail } = await stream.checkTail()
    await stream.trim(tail)
    await world.free(stream)
  }
  return {
    name,
    round,
    budget: ({ many }) => many * readerBytes + KEPT_BYTES,
    isOfAnyStorage: stuck !== STUCK_AT_HANDLER,
    scales: { test: { rounds: 1, many: 20 }, campaign: { rounds: 10, many: 40 } },
  }
}

// The memory shared by all followers of the stream: the latest appends, as bytes and in the requested forms.
const KEPT_BYTES = 3 * 8 * MIB
// The last batch of a reader in four forms; over a connection, also up to 1 MiB that the storage returns at
// once.
const GIVEN_BYTES = 4 * RECORDS * RECORD_BYTES

export const SLOW_READERS: readonly Scenario[] = [
  slowReaders('readers that never read', STUCK_IN_PROCESS, GIVEN_BYTES),
  slowReaders('readers that never read, over HTTP', STUCK_AT_HANDLER, GIVEN_BYTES),
  slowReaders('readers that never read, on sockets', STUCK_SOCKETS, GIVEN_BYTES + MIB),
]
