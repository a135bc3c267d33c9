import type { Stream } from '../../../src/index.ts'
import { strings } from '../../interop/records.ts'
import { basinOn, type ClientBasin, FETCH, S2S, S2S_GZIP, type Service } from '../../interop/support.ts'

export interface SoakOptions {
  readonly seconds: number
  readonly appenders: number
  readonly followers: number
}

export interface SoakResult {
  readonly batches: number
  readonly records: number
  /** Delivered records, added up over all followers. */
  readonly deliveries: number
}

/** Not retried, because a repeated append would duplicate its records. */
const retry = { maxAttempts: 1 }

/**
 * Runs many appenders and followers on one stream, with a mix of in-process calls, SSE and binary sessions.
 * An appender sends its next batch when the last one was acknowledged and one follower has received it, which
 * sets a pace that the machine can keep. Rejects as soon as a follower misses a record, or gets one twice or
 * out of order.
 */
export async function soak(service: Service, options: SoakOptions): Promise<SoakResult> {
  const clients = await Promise.all(
    [FETCH, S2S, S2S_GZIP].map((t) => basinOn(service.server.url, t, { retry })),
  )
  const [home] = clients as [ClientBasin]
  await home.basin.streams.create({ stream: 'soak', config: { retentionPolicy: { infinite: {} } } })
  const local = service.hw.basin(home.name).stream('soak')
  const remote = clients.map(({ s2 }, i) =>
    s2.basin(home.name).stream('soak', { forceTransport: [FETCH, S2S, S2S_GZIP][i]!.force }),
  )

  const followers = Array.from({ length: options.followers }, () => new Follower())
  const following = followers.map((follower, i) => {
    const kind = i % (remote.length + 1)
    const source = kind === 0 ? localRecords(local) : remoteRecords(remote[kind - 1]!)
    return follower.run(source)
  })
  const failed = Promise.all(following).then(() => new Promise<never>(() => {}))
  failed.catch(() => {})

  const end = performance.now() + options.seconds * 1_000
  const appends = Array.from({ length: options.appenders }, async (_, i) => {
    // A different kind than that of the follower with the same number.
    const kind = (i + 1) % (remote.length + 1)
    const appender = kind === 0 ? localAppender(local) : remoteAppender(remote[kind - 1]!)
    const follower = followers[i % followers.length]!
    let [batches, records] = [0, 0]
    while (performance.now() < end) {
      const bodies = Array.from({ length: 1 + (batches % 3) }, () => `${i} ${records++}`)
      const endSeqNum = await appender.append(bodies)
      batches++
      await Promise.race([follower.reach(endSeqNum), failed])
    }
    await appender.close()
    return { batches, records }
  })
  const sums = await Promise.all(appends)
  const records = sums.reduce((sum, { records }) => sum + records, 0)

  await Promise.race([Promise.all(followers.map((follower) => follower.reach(records))), failed])
  await Promise.all(followers.map((follower) => follower.stop()))
  await Promise.all(following)
  for (const stream of remote) await stream.close()
  for (const client of clients) await client.close()

  const { seqNum: tail } = await local.checkTail()
  if (tail !== records) throw new Error(`the tail is ${tail} after ${records} records`)
  for (const follower of followers) follower.check(sums.map(({ records }) => records))
  return {
    batches: sums.reduce((sum, { batches }) => sum + batches, 0),
    records,
    deliveries: followers.reduce((sum, { next }) => sum + next, 0),
  }
}

interface FollowedRecord {
  readonly seqNum: number
  readonly body: string
}

interface Records {
  /** Undefined at the end. */
  next(): Promise<readonly FollowedRecord[] | undefined>
  stop(): Promise<unknown>
}

function localRecords(stream: Stream): Records {
  const iterator = stream.follow({ seqNum: 0 }).batches()
  return {
    next: async () => {
      const { done, value } = await iterator.next()
      return done ? undefined : value.records
    },
    stop: async () => iterator.return?.(),
  }
}

type RemoteStream = ReturnType<ClientBasin['handle']>

function remoteRecords(stream: RemoteStream): Records {
  const opening = stream
    .readSession({ start: { from: { seqNum: 0 } } })
    .then((session) => session.getReader())
  return {
    next: async () => {
      const { done, value } = await (await opening).read()
      return done ? undefined : [value]
    },
    stop: async () => (await opening).cancel(),
  }
}

interface Appender {
  /** Resolves to the sequence number after the batch. */
  append(bodies: string[]): Promise<number>
  close(): Promise<unknown>
}

function localAppender(stream: Stream): Appender {
  return {
    append: async (bodies) => (await stream.append(bodies.map((body) => ({ body })))).end.seqNum,
    close: async () => {},
  }
}

function remoteAppender(stream: RemoteStream): Appender {
  const opening = stream.appendSession()
  return {
    append: async (bodies) => {
      const ticket = await (await opening).submit(strings(...bodies))
      return (await ticket.ack()).end.seqNum
    },
    close: async () => (await opening).close(),
  }
}

/** Records what it receives, and checks that every record arrives once and in the order of its appender. */
class Follower {
  next = 0
  readonly #received = new Map<number, number>()
  #source: Records | undefined
  #waiting: { readonly seqNum: number; readonly reached: () => void }[] = []
  #stopped = false

  async run(source: Records): Promise<void> {
    this.#source = source
    for (;;) {
      const records = await source.next()
      if (records === undefined) {
        if (this.#stopped) return
        throw new Error(`a session ended at ${this.next}`)
      }
      for (const record of records) this.#take(record)
      this.#waiting = this.#waiting.filter(({ seqNum, reached }) => {
        if (seqNum > this.next) return true
        reached()
        return false
      })
    }
  }

  /** Resolves when everything before a sequence number has arrived. */
  reach(seqNum: number): Promise<void> {
    if (this.next >= seqNum) return Promise.resolve()
    return new Promise((reached) => this.#waiting.push({ seqNum, reached }))
  }

  async stop(): Promise<void> {
    this.#stopped = true
    await this.#source?.stop()
  }

  check(expected: readonly number[]): void {
    for (const [appender, count] of expected.entries()) {
      const received = this.#received.get(appender) ?? 0
      if (received !== count) throw new Error(`${received} of ${count} records of appender ${appender}`)
    }
  }

  #take({ seqNum, body }: FollowedRecord): void {
    if (seqNum !== this.next) throw new Error(`record ${seqNum} instead of ${this.next}`)
    this.next++
    const [appender, index] = body.split(' ').map(Number) as [number, number]
    const received = this.#received.get(appender) ?? 0
    if (index !== received) throw new Error(`appender ${appender}: ${index} instead of ${received}`)
    this.#received.set(appender, received + 1)
  }
}
