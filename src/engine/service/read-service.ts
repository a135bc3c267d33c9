import type { Expiry } from '../../core/lifetime.ts'
import {
  afterLocating,
  planRead,
  type ReadKind,
  type ReadPlan,
  type ReadPolicy,
} from '../../core/read-plan.ts'
import { streamTailOf } from '../../core/sequence.ts'
import type { StreamMetadata } from '../../model/creation.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { StreamRef } from '../../model/names.ts'
import type { StreamTail } from '../../model/position.ts'
import { assertReadQuery, type ReadQuery } from '../../model/read-query.ts'
import { type AnySignal, onAbort, type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'
import { closedError } from '../errors.ts'
import { ReadCursor } from '../log/follow.ts'
import type { ReadBudget } from '../log/read-budget.ts'
import type { RecordReader } from '../log/record-codec.ts'
import type { StreamLease, StreamLog } from '../log/stream-log.ts'
import type { StreamTable, StreamTarget } from '../streams/table.ts'
import type { Admission } from './admission.ts'
import type { Deadlines } from './deadlines.ts'
import type { UsageRecorder } from './usage.ts'

export interface OpenReadOptions extends ReadPolicy {
  readonly heartbeats?: boolean | 'first' | undefined
  /** Ends the session with its reason. */
  readonly ending?: SharedSignal | undefined
  /** Called when a session that was opened is over. */
  readonly onEnd?: (() => void) | undefined
}

/** A stream and its state. */
export interface StreamDescription {
  /** Identifies the stream: no other one of the storage ever had it. */
  readonly id: string
  /** The metadata that was given at its creation. */
  readonly metadata: StreamMetadata
  /** The time at which it is deleted; undefined is never. */
  readonly expiry: Expiry | undefined
  /** The position of the next record. */
  readonly tail: StreamTail
  /** Records below it are trimmed. */
  readonly trimPoint: number
}

export interface ReadContext {
  readonly table: StreamTable
  readonly admission: Admission
  readonly readBudget: ReadBudget
  readonly usage: UsageRecorder
  readonly deadlines: Deadlines
  readonly clock: Clock
  readonly random: () => number
  readonly trimGraceMs: number
  readonly closing: SharedSignal
}

/** Opens reads, within the limits of {@link Admission}. */
export class ReadService {
  readonly #context: ReadContext
  readonly #open = new Set<ReadCursor>()

  constructor(context: ReadContext) {
    this.#context = context
  }

  /** Reads that are open. */
  get openReads(): number {
    return this.#open.size
  }

  /**
   * Opens a read session. Resolves to undefined when it ends at once. Rejects with `range_not_satisfiable`.
   */
  async open(
    target: StreamTarget,
    query: ReadQuery,
    options: OpenReadOptions,
  ): Promise<ReadCursor | undefined> {
    const opened = await this.#openCursor(target, query, 'session', options)
    return opened instanceof ReadCursor ? opened : undefined
  }

  /**
   * Reads one batch (docs/protocol.md "Unary reads"). With `waitMs` it is a long poll, which the signal
   * ends.
   */
  async batch(
    target: StreamTarget,
    query: ReadQuery,
    signal: AnySignal | undefined,
    policy: ReadPolicy = {},
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    const { usage } = this.#context
    const opening = this.#openCursor(target, query, 'unary', policy)
    const closeLate = (late: unknown) => void (late instanceof ReadCursor && late.close())
    const opened = await (signal === undefined ? opening : unlessAborted(signal, opening, closeLate))
    const { basin } = target.ref
    if (!(opened instanceof ReadCursor)) {
      usage.unaryRead(basin)
      const empty = mergeBatches([])
      // Published clients of the hosted service get no tail here.
      return policy.allowsEmpty === 'always' ? empty.withTail(opened) : empty
    }
    const cursor = opened
    const ignoreSignal = signal && onAbort(signal, () => cursor.close())
    try {
      const batches: ReadBatch[] = []
      for (;;) {
        const stored = await cursor.nextStored()
        if (stored === undefined) break
        batches.push(stored)
      }
      // Stored records are returned without waiting for more. Without any, the first live append is.
      const live = batches.length === 0 ? await cursor.next() : undefined
      signal?.throwIfAborted()
      const read = mergeBatches(live?.kind === 'batch' ? [live.batch] : batches)
      // A poller must learn that nothing will follow.
      const batch = read.count === 0 && cursor.tail.closed ? read.withTail(cursor.tail) : read
      if (batch.count > 0) usage.delivered(basin, batch.meteredBytes)
      usage.unaryRead(basin)
      return batch
    } finally {
      ignoreSignal?.()
      cursor.close()
    }
  }

  /** Resolves to what is known of a stream. With `isRead` it counts as a read of the stream. */
  async describe(target: StreamTarget, isRead = false): Promise<StreamDescription> {
    const { log, release } = await this.#context.table.lease(target, 'read')
    if (isRead) this.#context.deadlines.noteRead(log)
    release()
    return descriptionOf(log)
  }

  /** Returns what this engine knows of a stream; undefined if that is nothing. */
  known(ref: StreamRef): StreamDescription | undefined {
    const log = this.#context.table.get(ref)
    return log && descriptionOf(log)
  }

  /** Ends all reads with `closed`. */
  close(): void {
    for (const cursor of [...this.#open]) cursor.fail(closedError())
  }

  /** Resolves to the tail when there is nothing to read. */
  async #openCursor(
    target: StreamTarget,
    query: ReadQuery,
    kind: ReadKind,
    options: OpenReadOptions,
  ): Promise<ReadCursor | StreamTail> {
    assertReadQuery(query)
    const endSession = this.#context.admission.openSession()
    let lease: StreamLease | undefined
    const release = () => {
      lease?.release()
      endSession()
    }
    try {
      lease = await this.#context.table.lease(target, 'read')
      const { log } = lease
      this.#context.deadlines.noteRead(log)
      const reader = log.codec.reader(target.key)
      const { clock, trimGraceMs } = this.#context
      const outcome = planRead(query, kind, log.head, options, clock.now() - trimGraceMs)
      if (outcome.kind === 'empty') {
        if (kind === 'session') this.#context.usage.streamingRead(target.ref.basin)()
        release()
        return streamTailOf(log.head)
      }
      if (outcome.kind === 'unsatisfiable') throw unsatisfiable(log.head.tail)
      return await this.#locate({ log, release }, reader, kind, outcome.plan, options)
    } catch (error) {
      release()
      throw error
    }
  }

  async #locate(
    { log, release }: StreamLease,
    reader: RecordReader,
    kind: ReadKind,
    plan: ReadPlan,
    { heartbeats = false, ending, onEnd, allowsEmpty }: OpenReadOptions,
  ): Promise<ReadCursor | StreamTail> {
    const { readBudget, usage, clock, random, closing } = this.#context
    const tail = streamTailOf(log.head)
    let ignoreEnding: (() => void) | undefined
    let endUsage: (() => void) | undefined
    const onClose = () => {
      this.#open.delete(cursor)
      ignoreEnding?.()
      endUsage?.()
      release()
      onEnd?.()
    }
    const { basin } = log.document
    const cursor: ReadCursor = new ReadCursor(log, plan, {
      reader,
      budget: readBudget,
      clock,
      random,
      heartbeats,
      // A unary read has delivered nothing until it succeeds as a whole.
      meter: kind === 'session' ? usage : undefined,
      onClose,
    })
    this.#open.add(cursor)
    ignoreEnding = ending && onAbort(ending, () => cursor.fail(ending.reason))
    // `close` may have run before the cursor was added.
    if (closing.aborted) cursor.fail(closedError())
    try {
      const hasRecord = await cursor.locate()
      if (closing.aborted) throw closedError()
      // Ended meanwhile: the first `next` reports how.
      if (hasRecord === undefined) return cursor
      const outcome = afterLocating(plan, hasRecord, { allowsEmpty })
      if (outcome === 'unsatisfiable') throw unsatisfiable(tail)
      if (kind === 'session' && this.#open.has(cursor)) endUsage = usage.streamingRead(basin)
      if (outcome === 'read') return cursor
      cursor.close()
      return tail
    } catch (error) {
      cursor.close()
      throw error
    }
  }
}

function descriptionOf({ head, document }: StreamLog): StreamDescription {
  const { logId, metadata = NO_METADATA, expiry } = document
  return { id: logId, metadata, expiry, tail: streamTailOf(head), trimPoint: head.trimPoint }
}

const NO_METADATA: StreamMetadata = Object.freeze({})

function unsatisfiable(tail: StreamTail): HeadwaterError {
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
  return new ReadBatch(
    new RecordBatch(
      undefined,
      batches.map(({ data }) => data),
    ),
    summary,
    last?.tail,
  )
}
