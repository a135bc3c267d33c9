import type { AppendSession } from '../../src/api/append-session.ts'
import type { Stream } from '../../src/api/stream.ts'
import { type HeadwaterError, invalid } from '../../src/model/errors.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import type { CopyEnd } from '../../src/sync/copy-end.ts'
import { COPY_CONFIG } from './copy-config.ts'
import { deleteIfPresent, firstSeqNum, segmentStream } from './copy-streams.ts'
import { codeOf, isStreamMissing } from './errors.ts'

/** What few mirrors need: to start again, and earlier history. */
export const HISTORY = new LazyModule('earlier history', () => import('./earlier-history.ts'))

/** How often a copy is looked up again while others delete and create it. */
const ATTEMPTS_MAX = 10

/** A failure of the local stream. */
export class LocalFailure extends Error {
  readonly error: unknown

  constructor(error: unknown) {
    super('the local stream failed')
    this.error = error
  }
}

/** Settles as `work` does, with failures as {@link LocalFailure}. */
export async function locally<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    throw new LocalFailure(error)
  }
}

/** An open copy. The session fails if the copy is deleted, even if another one is created meanwhile. */
export interface OpenCopy {
  readonly session: AppendSession
  readonly end: CopyEnd
}

/** The local copy of a remote stream. A new copy is an empty stream that begins with sequence number 0. */
export class LocalCopy {
  readonly #stream: Stream
  /** Never creates the stream as an ordinary one. */
  readonly #existing: Stream

  constructor(stream: Stream) {
    this.#stream = stream
    this.#existing = stream.sibling(stream.name, { autoCreate: false, config: COPY_CONFIG })
  }

  /** Resolves to the identity of the copy, which is created if there is none. */
  async ensure(): Promise<string> {
    for (let attempt = 1; ; attempt++) {
      try {
        const identity = await this.#existing.identity()
        const { timestamping } = await this.#existing.config()
        if (timestamping.mode === 'client-require' && timestamping.uncapped) return identity
        throw invalid(`stream \`${this.#stream.name}\` exists and is not a copy made by a mirror`, 'local')
      } catch (error) {
        if (!isStreamMissing(error) || attempt === ATTEMPTS_MAX) throw error
      }
      await this.#create(0)
    }
  }

  /** Opens the copy. Resolves to undefined if it is not the one with the identity. */
  async open(identity: string, signal: AbortSignal): Promise<OpenCopy | undefined> {
    let session: AppendSession | undefined
    try {
      // Opened first: it belongs to the stream that has the identity now, or to an earlier one.
      session = await this.#existing.appendSession({ signal })
      if ((await this.#existing.identity()) === identity) return { session, end: await this.#end() }
    } catch (error) {
      session?.close().catch(() => {})
      if (isStreamMissing(error)) return undefined
      throw error
    }
    session.close().catch(() => {})
    return undefined
  }

  /** Deletes the earlier records that a trim removes. */
  async trimEarlier(identity: string, seqNum: number): Promise<void> {
    const segment = segmentStream(this.#existing, identity, await firstSeqNum(this.#existing))
    if (!(await segment.exists())) return
    const { dropEarlier } = await HISTORY.load()
    await dropEarlier(this.#existing, identity, seqNum)
  }

  /** Deletes the copy and creates an empty one that begins with a sequence number. */
  async replace(seqNum: number): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      await deleteIfPresent(this.#existing)
      if (await this.#create(seqNum)) return
    }
  }

  /** Resolves to whether the copy was created. */
  async #create(seqNum: number): Promise<boolean> {
    try {
      // The lowest timestamp is not known. It tells that nothing was copied yet.
      await this.#stream.restore({ config: COPY_CONFIG, start: { seqNum, timestamp: 0 } })
      return true
    } catch (error) {
      if (codeOf(error) === 'resource_already_exists') return false
      throw error
    }
  }

  async #end(): Promise<CopyEnd> {
    const tail = await this.#existing.checkTail()
    if (tail.seqNum === 0) return { tail, last: undefined }
    const seqNum = tail.seqNum - 1
    const { records } = await this.#existing.readBatch({ seqNum, count: 1 }, { as: 'bytes' })
    const last = records[0]
    return { tail, last: last?.seqNum === seqNum ? last : undefined }
  }
}

/** Whether an append failed because the copy was deleted. */
export function isCopyGone(error: HeadwaterError): boolean {
  return error.code === 'stream_deletion_pending' || error.code === 'stream_deleted' || isStreamMissing(error)
}
