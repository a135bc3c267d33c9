import { onTestFinished } from 'vitest'
import { type Outbox, type OutboxOptions, outbox } from '../../adapters/sync/outbox.ts'
import type { HeadwaterError, Stream } from '../../src/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import { OPTIONS, openBoth, type openDevice, type Server } from './mirrored.ts'

type Device = Awaited<ReturnType<typeof openDevice>>
export type AppendCall = Parameters<Stream['append']>
type Conditions = Pick<NonNullable<AppendCall[1]>, 'matchSeqNum' | 'producer'>

/** Starts the outbox of a device. */
export function startOn({ hw, remote }: Pick<Device, 'hw' | 'remote'>, options: OutboxOptions = {}): Outbox {
  const log = hw.basin('basin').stream('.outbox/stream')
  const box = outbox(log, remote, { ...OPTIONS, ...options })
  onTestFinished(() => box.close())
  return box
}

/** A server with an empty stream, and a device with an outbox. */
export async function openOutbox(options: OutboxOptions = {}) {
  const both = await openBoth()
  await both.origin.readBatch({}, { create: true })
  return { ...both, box: startOn(both, options) }
}

/** Texts with the numbers from one to before another. */
export const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `${from + index}`)
export const bodies = async (server: Server) => (await server.stream.read().toArray()).map(({ body }) => body)
export const isPost = ({ method }: Request) => method === 'POST'
export const isRead = ({ method, url }: Request) => method === 'GET' && !url.endsWith('/tail')

/** The conditions of the appends of a stream from now on. `reply` may answer instead of the server. */
export function conditionsOf(
  remote: Stream,
  reply: (conditions: Conditions) => HeadwaterError | undefined = () => undefined,
): Conditions[] {
  const append = remote.append.bind(remote)
  const seen: Conditions[] = []
  remote.append = async (...[records, options]: AppendCall) => {
    const { matchSeqNum, producer } = options ?? {}
    seen.push({ matchSeqNum, producer })
    const error = reply({ matchSeqNum, producer })
    if (error !== undefined) throw error
    return append(records, options)
  }
  return seen
}

/** A server, and a device whose outbox has sent the first batch of an epoch. */
export async function openSent(reply?: (conditions: Conditions) => HeadwaterError | undefined) {
  const both = await openBoth()
  await both.origin.readBatch({}, { create: true })
  const conditions = conditionsOf(both.remote, reply)
  // Two producers must have different ids.
  const random = new Prng(1)
  const box = startOn(both, { random: () => random.next() })
  await box.append('0')
  await both.clock.settle()
  return { ...both, box, conditions }
}

/** A property of each request from now on: its method by default. */
export function watch<Seen = string>(
  network: Server['network'],
  of: (request: Request) => Seen = ({ method }) => method as Seen,
): Seen[] {
  const seen: Seen[] = []
  network.drop({
    when: (request) => {
      seen.push(of(request))
      return false
    },
  })
  return seen
}

/**
 * Returns functions that keep what arrives from the reads that are open, until they end, and that let new
 * reads deliver again.
 */
export function holdableReads(remote: Stream) {
  const openCursor = remote.openCursor.bind(remote)
  let isHeld = false
  remote.openCursor = async (...args) => {
    const cursor = await openCursor(...args)
    if (cursor === undefined) return undefined
    let end = () => {}
    const closed = new Promise<undefined>((resolve) => {
      end = () => resolve(undefined)
    })
    return {
      get streamId() {
        return cursor.streamId
      },
      next: async () => {
        const event = await cursor.next()
        return isHeld ? closed : event
      },
      close: () => {
        cursor.close()
        end()
      },
    }
  }
  return {
    hold: () => {
      isHeld = true
    },
    release: () => {
      isHeld = false
    },
  }
}

/**
 * Drops the next append for the client, or one after it, and returns a function that delivers it.
 */
export function delayNext({ network, handle }: Server, after = 0) {
  let late: Request | undefined
  let seen = 0
  network.drop({
    when: (request) => {
      if (!isPost(request) || late !== undefined || seen++ < after) return false
      late = request.clone()
      return true
    },
  })
  const deliver = async () => (await handle(late!.clone())).status
  return Object.assign(deliver, { isLate: () => late !== undefined })
}
