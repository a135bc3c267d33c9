import { fenceRecord, type Headwater, HeadwaterError, type Stream } from '../../../src/index.ts'
import type { Append, AppendOutcome, Outcome, ReadOutcome } from './operations.ts'
import type { Perform, Target } from './record-history.ts'

/**
 * Clients of `count` engines or servers. Half of the clients make independent appends, the others share a
 * session for each stream. A third reads in pages, a third by sessions, and a third follows the stream page
 * by page. `hwOf` resolves to how an engine is reached now.
 */
export function clientsOf(
  count: number,
  hwOf: (index: number) => Headwater | Promise<Headwater>,
  basin = 'linearizability',
): { readonly connect: Target['connect']; endSessions(): Promise<void> } {
  const sessions = new Map<string, SharedSessions>()
  return {
    connect(name, client) {
      const [index, kind] = [client % count, Math.floor(client / count)]
      const streamOf = async () => (await hwOf(index)).basin(basin).stream(name)
      const key = `${index} ${name}`
      const shared = sessions.get(key) ?? new SharedSessions(streamOf)
      sessions.set(key, shared)
      const read = [readPages, readSession, follower()][kind % 3]!
      return performing({
        append: (append) => (kind % 2 === 0 ? appendAlone(streamOf, append) : shared.append(append)),
        read: async () => read(await streamOf()),
        tail: async () => (await (await streamOf()).checkTail()).seqNum,
      })
    },
    async endSessions() {
      for (const shared of sessions.values()) await shared.end()
    },
  }
}

interface Calls {
  append(append: Append): Promise<AppendOutcome>
  read(): Promise<ReadOutcome>
  tail(): Promise<number>
}

function performing({ append, read, tail }: Calls): Perform {
  return async (operation): Promise<Outcome> => {
    if (operation.kind === 'append') return append(operation)
    try {
      return operation.kind === 'read' ? await read() : { kind: 'tail', tail: await tail() }
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      return { kind: 'failed' }
    }
  }
}

async function appendAlone(streamOf: () => Promise<Stream>, append: Append): Promise<AppendOutcome> {
  try {
    const ack = await (await streamOf()).append(...argumentsOf(append))
    return appended(ack)
  } catch (error) {
    return failed(error)
  }
}

function argumentsOf({ bodies, setFencingToken, matchSeqNum, fencingToken }: Append) {
  const fence = setFencingToken === undefined ? [] : [fenceRecord(setFencingToken)]
  return [[...fence, ...bodies], { matchSeqNum, fencingToken }] as const satisfies Parameters<
    Stream['append']
  >
}

type Ack = Awaited<ReturnType<Stream['append']>>

function appended({ start, end, tail }: Ack): AppendOutcome & { readonly kind: 'appended' } {
  return { kind: 'appended', start: start.seqNum, end: end.seqNum, tail: tail.seqNum }
}

/** Rethrows errors that must not occur: those that are not from headwater, and those of malformed calls. */
function failed(error: unknown): AppendOutcome {
  if (!HeadwaterError.is(error) || error.code === 'invalid') throw error
  // A repeated call has such an error, too, although an earlier attempt may have taken effect.
  if (error.mayHaveEffects) return { kind: 'unknown' }
  if (error.code === 'seq_num_mismatch') return { kind: 'refused', seqNum: error.seqNum! }
  if (error.code === 'fencing_token_mismatch') return { kind: 'refused', fencingToken: error.fencingToken! }
  return { kind: 'not-made' }
}

async function readPages(stream: Stream, bodies: string[] = []): Promise<ReadOutcome> {
  for (;;) {
    const { records, tail } = await stream.readBatch({ seqNum: bodies.length })
    for (const { body } of records) bodies.push(body)
    if (records.length > 0) continue
    if (tail === undefined) throw new Error('a page without records, and no word of the tail')
    return contentsOf(bodies, tail.seqNum)
  }
}

/** Reads on where the read before has ended, so that each read shows what all of them have returned. */
function follower(): typeof readPages {
  const bodies: string[] = []
  return (stream) => readPages(stream, bodies)
}

/** A heartbeat means that everything before the tail has been delivered. */
async function readSession(stream: Stream): Promise<ReadOutcome> {
  const bodies: string[] = []
  for await (const event of stream.follow({ seqNum: 0 }, { create: true }).events()) {
    if (event.kind === 'heartbeat') return contentsOf(bodies, event.tail.seqNum)
    for (const { body } of event.batch.records) bodies.push(body)
  }
  throw new Error('a session that goes on for ever has ended')
}

function contentsOf(bodies: readonly string[], tail: number): ReadOutcome {
  return { kind: 'read', tail, bodies: [...bodies] }
}

/**
 * Append sessions that several clients share, so that their appends are in flight together. The first failure
 * ends a session, and the next append opens another one.
 */
class SharedSessions {
  readonly #streamOf: () => Promise<Stream>
  #session: ReturnType<Stream['appendSession']> | undefined
  /** The outcome of the append that was submitted last in the session. */
  #last: Promise<AppendOutcome> | undefined
  readonly #ending: Promise<void>[] = []

  constructor(streamOf: () => Promise<Stream>) {
    this.#streamOf = streamOf
  }

  async append(append: Append): Promise<AppendOutcome> {
    this.#session ??= this.#streamOf().then((stream) => stream.appendSession())
    const session = this.#session
    const outcome = outcomeBehind(this.#last, acknowledged(session, append))
    this.#last = outcome
    if ((await outcome).kind !== 'appended' && this.#session === session) void this.#end()
    return outcome
  }

  async end(): Promise<void> {
    if (this.#session !== undefined) this.#end()
    await Promise.all(this.#ending)
  }

  #end(): void {
    // Closing a failed session fails too.
    this.#ending.push(this.#session!.then((session) => session.close()).catch(() => {}))
    this.#session = undefined
    this.#last = undefined
  }
}

async function acknowledged(opening: ReturnType<Stream['appendSession']>, append: Append): Promise<Ack> {
  const session = await opening
  return (await session.submit(...argumentsOf(append))).ack()
}

/**
 * Only the first failure of a session has a reason of its own: appends behind one without effect have no
 * effect either.
 */
async function outcomeBehind(
  previous: Promise<AppendOutcome> | undefined,
  acknowledgement: Promise<Ack>,
): Promise<AppendOutcome> {
  const outcome = await acknowledgement.then(appended, (error: unknown) => ({ error }))
  const before = (await previous) ?? { kind: 'appended', start: 0, end: 0, tail: 0 }
  if ('error' in outcome) {
    if (before.kind === 'appended') return failed(outcome.error)
    return { kind: before.kind === 'unknown' ? 'unknown' : 'not-made' }
  }
  if (before.kind !== 'appended') throw new Error('a session acknowledged an append behind one that failed')
  if (before.end > outcome.start) throw new Error(`a session put ${outcome.start} behind ${before.end}`)
  return outcome
}
