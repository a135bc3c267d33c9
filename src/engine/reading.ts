import { afterLocating, planRead, type ReadKind, type ReadPlan, type ReadPolicy } from '../core/read-plan.ts'
import { concatBytes } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { StreamPosition } from '../model/position.ts'
import { checkReadQuery, type ReadQuery } from '../model/read-query.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'
import { onAbort, unlessAborted } from './abort.ts'
import type { EngineContext, StreamUse } from './context.ts'
import type { BlockOpener } from './encryption/block-opener.ts'
import { closedError, deletedError } from './errors.ts'
import { ReadCursor } from './read-cursor.ts'
import { INCARNATIONS_MAX, type StreamAccess } from './stream-access.ts'
import { type HeldStream, opened } from './stream-logs.ts'

export interface ReadSessionOptions extends ReadPolicy {
  readonly heartbeats?: boolean | undefined
  /** Ends the session with its reason. */
  readonly ending?: AbortSignal | undefined
  /** Called when the session that was opened is over; not when it could not be opened. */
  readonly onEnd?: (() => void) | undefined
}

/** The reads of an engine: plans them, opens them, counts them. */
export class Reading {
  readonly #engine: EngineContext
  readonly #access: StreamAccess
  readonly #open = new Set<ReadCursor>()

  constructor(engine: EngineContext, access: StreamAccess) {
    this.#engine = engine
    this.#access = access
  }

  /** How many reads are open. */
  get open(): number {
    return this.#open.size
  }

  /** Opens a read session. Undefined: it has nothing to deliver and ends at once. Rejects with 416 `range_not_satisfiable`. */
  session(use: StreamUse, query: ReadQuery, options: ReadSessionOptions): Promise<ReadCursor | undefined> {
    return this.#cursor(use, query, 'session', options)
  }

  /** Reads one batch (wire-behaviour.md 5.6). With `waitSeconds` it is a long poll, which the signal ends. */
  async unary(use: StreamUse, query: ReadQuery, signal: AbortSignal | undefined): Promise<ReadBatch> {
    signal?.throwIfAborted()
    const opening = this.#cursor(use, query, 'unary', {})
    const cursor = await unlessAborted(signal, opening).catch((error: unknown) => {
      // The read may open all the same, too late.
      opening.then((late) => late?.close()).catch(() => {})
      throw error
    })
    if (cursor === undefined) return mergeBatches([])
    const ignoreSignal = signal && onAbort(signal, () => cursor.close())
    try {
      const batches: ReadBatch[] = []
      for (;;) {
        const stored = await cursor.nextStored()
        if (stored === undefined) break
        batches.push(stored)
      }
      // What was there is returned without waiting for more; else the first append that comes live.
      const live = batches.length === 0 ? await cursor.next() : undefined
      signal?.throwIfAborted()
      const batch = mergeBatches(live?.kind === 'batch' ? [live.batch] : batches)
      this.#recordUnary(use.ref.basin, batch)
      return batch
    } finally {
      ignoreSignal?.()
      cursor.close()
    }
  }

  async tail(use: StreamUse): Promise<StreamPosition> {
    const { log, release } = await this.#fresh(use)
    release()
    return log.head.tail
  }

  /** Ends all reads with `unavailable`. */
  close(): void {
    for (const cursor of [...this.#open]) cursor.fail(closedError())
  }

  #recordUnary(basin: string, { count, meteredBytes }: ReadBatch): void {
    const { usage } = this.#engine
    if (count > 0) usage.delivered(basin, meteredBytes)
    usage.unaryRead(basin)
  }

  async #cursor(
    use: StreamUse,
    query: ReadQuery,
    kind: ReadKind,
    options: ReadSessionOptions,
  ): Promise<ReadCursor | undefined> {
    checkReadQuery(query)
    const { log, release } = await opened(this.#engine.sessions, () => this.#fresh(use))
    try {
      const { cipher } = log
      const opener = cipher?.opener(cipher.required(use.key))
      const outcome = planRead(query, kind, log.head, options)
      if (outcome.kind === 'empty') {
        this.#engine.usage.streamingRead(use.ref.basin)()
        release()
        return undefined
      }
      if (outcome.kind === 'unsatisfiable') throw unsatisfiable(log.head.tail)
      return await this.#locate({ log, release }, opener, kind, outcome.plan, options)
    } catch (error) {
      release()
      throw error
    }
  }

  async #locate(
    { log, release }: HeldStream,
    opener: BlockOpener | undefined,
    kind: ReadKind,
    plan: ReadPlan,
    { heartbeats = false, ending, onEnd }: ReadSessionOptions,
  ): Promise<ReadCursor> {
    const { tail } = log.head
    let ignoreEnding: (() => void) | undefined
    let endUsage: (() => void) | undefined
    const onClose = () => {
      this.#open.delete(cursor)
      ignoreEnding?.()
      endUsage?.()
      release()
      onEnd?.()
    }
    const { usage } = this.#engine
    const { basin } = log.document
    // A unary read has delivered nothing until it succeeds as a whole.
    const onDelivered = kind === 'session' ? (bytes: number) => usage.delivered(basin, bytes) : undefined
    const hooks = { onDelivered, onClose }
    const cursor: ReadCursor = new ReadCursor(this.#engine, log, plan, { heartbeats, opener, ...hooks })
    this.#open.add(cursor)
    ignoreEnding = ending && onAbort(ending, () => cursor.fail(ending.reason))
    // The engine may have begun to close before this read could be told.
    if (this.#engine.closing.aborted) cursor.fail(closedError())
    try {
      const hasRecord = await cursor.locate()
      if (this.#engine.closing.aborted) throw closedError()
      // Ended meanwhile: its first `next` tells how.
      if (hasRecord === undefined) return cursor
      if (afterLocating(plan, hasRecord) === 'unsatisfiable') throw unsatisfiable(tail)
      const isStillOpen = this.#open.has(cursor)
      if (kind === 'session' && isStillOpen) endUsage = usage.streamingRead(basin)
      return cursor
    } catch (error) {
      cursor.close()
      throw error
    }
  }

  /** The stream with the head that the storage has now. */
  async #fresh(use: StreamUse): Promise<HeldStream> {
    for (let i = 0; i < INCARNATIONS_MAX; i++) {
      const held = await this.#access.hold(use, 'read')
      try {
        if (await held.log.refresh()) return held
      } catch (error) {
        held.release()
        throw error
      }
      held.release()
    }
    throw deletedError()
  }
}

function unsatisfiable(tail: StreamPosition): HeadwaterError {
  return new HeadwaterError('range_not_satisfiable', 'no record is available at the requested start', {
    tail,
  })
}

function mergeBatches(batches: readonly ReadBatch[]): ReadBatch {
  if (batches.length === 1) return batches[0]!
  const last = batches.at(-1)
  const summary = {
    count: batches.reduce((sum, { count }) => sum + count, 0),
    meteredBytes: batches.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0),
    lastSeqNum: last?.lastSeqNum ?? -1,
  }
  return new ReadBatch(RecordBatch.ofData(concatBytes(batches.map(({ data }) => data))), summary, last?.tail)
}
