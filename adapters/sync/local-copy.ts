import type { AppendSession } from '../../src/api/append-session.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { StreamConfigInput } from '../../src/model/config.ts'
import { invalid, isStreamMissing } from '../../src/model/errors.ts'
import { codeOf } from '../../src/sync/failures.ts'
import { type Arrival, COMPARED_RECORDS, type CopyEnd, startOf } from '../../src/sync/mirror.ts'
import type { OutboxLog } from './outbox-log.ts'

/** Keeps records forever and their timestamps unchanged, and rejects records of the app, which have none. */
const COPY_CONFIG = {
  retentionPolicy: 'infinite',
  timestamping: { mode: 'client-require', uncapped: true },
  deleteOnEmpty: { minAgeSeconds: 0 },
} as const satisfies StreamConfigInput

/** The metadata of a copy: the identity of its stream, or an empty text if that is not known. */
const SOURCE = 'headwater-copy-of'

/** How often a copy is looked up again while others delete and create it. */
const ATTEMPTS_MAX = 10

/** An open copy. The session fails if the copy is deleted, even if another one is created meanwhile. */
interface OpenCopy {
  readonly session: AppendSession
  readonly end: CopyEnd
}

/** The local copy of a remote stream. A new copy is an empty stream that begins with sequence number 0. */
export class LocalCopy {
  readonly #stream: Stream
  /** The stream, which is never created as an ordinary one. */
  readonly #existing: Stream
  readonly #log: OutboxLog | undefined

  /** `log` is that of the outbox that sends to the remote stream. */
  constructor(stream: Stream, log?: OutboxLog | undefined) {
    this.#stream = stream
    this.#log = log
    this.#existing = stream.sibling(stream.name, { autoCreate: false, config: COPY_CONFIG })
  }

  /** Resolves to the identity of the copy, which is created if there is none. */
  async ensure(): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const identity = await this.#existing.identity()
        if (SOURCE in (await this.#existing.metadata())) return identity
        throw invalid(
          `stream \`${this.#stream.name}\` exists and is not a copy of a mirror; use another name`,
          'local',
        )
      } catch (error) {
        if (!isStreamMissing(error) || attempt === ATTEMPTS_MAX) throw error
      }
      await this.#create(0, undefined)
    }
  }

  /** Resolves to the identity of the remote stream, as far as it is known. */
  async #streamId(): Promise<string | undefined> {
    return (await this.#existing.metadata())[SOURCE] || undefined
  }

  /** Opens the copy. Resolves to undefined if it is not the one with the identity. */
  async open(identity: string, signal: AbortSignal): Promise<OpenCopy | undefined> {
    let session: AppendSession | undefined
    try {
      // Opened first: it belongs to the stream that has the identity now, or to an earlier one.
      session = await this.#existing.appendSession({ signal })
      const end = await this.#end()
      if ((await this.#existing.identity()) === identity) return { session, end }
    } catch (error) {
      session?.close().catch(() => {})
      if (isStreamMissing(error)) return undefined
      throw error
    }
    session.close().catch(() => {})
    return undefined
  }

  async #end(): Promise<CopyEnd> {
    const streamId = await this.#streamId()
    const tail = await this.#existing.checkTail()
    const query = { seqNum: Math.max(0, tail.seqNum - COMPARED_RECORDS), clamp: true }
    const last = await this.#existing.read(query, { as: 'bytes' }).toArray()
    return { streamId, tail, last: last.filter(({ seqNum }) => seqNum < tail.seqNum) }
  }

  /**
   * Deletes the copy, and creates an empty one that begins as a read of the remote stream does. Before that,
   * what the outbox may have sent to another stream is parked: one that had another identity, or was copied
   * and had none.
   */
  async begin(first: Arrival, signal: AbortSignal): Promise<void> {
    const { streamId } = first
    const known = await this.#streamId()
    const isOther = known === undefined ? await this.#hasBegun() : known !== streamId
    if (isOther) await this.#log?.replaceStream(signal)
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      try {
        await this.#existing.delete()
      } catch (error) {
        if (!isStreamMissing(error)) throw error
      }
      if (await this.#create(startOf(first), streamId)) return
    }
  }

  async #hasBegun(): Promise<boolean> {
    const { seqNum } = await this.#existing.checkTail()
    return seqNum > 0
  }

  /** Creates an empty copy that begins with a sequence number. Resolves to false if there is a copy. */
  async #create(seqNum: number, streamId = ''): Promise<boolean> {
    try {
      // The lowest timestamp is not known. It tells that nothing was copied yet.
      const start = { seqNum, timestamp: 0 }
      await this.#stream.restore({ config: COPY_CONFIG, start, metadata: { [SOURCE]: streamId } })
      return true
    } catch (error) {
      if (codeOf(error) === 'resource_already_exists') return false
      throw error
    }
  }
}
