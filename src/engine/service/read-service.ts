import type { Expiry } from '../../core/lifetime.ts'
import { afterLocating, planRead, type ReadKind, type ReadPolicy } from '../../core/read-plan.ts'
import { streamTailOf } from '../../core/sequence.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { StreamMetadata } from '../../model/info.ts'
import type { StreamRef } from '../../model/names.ts'
import type { StreamTail } from '../../model/position.ts'
import { assertReadQuery, type ReadQuery } from '../../model/read-query.ts'
import { onAbort, type SharedSignal, unlessAborted } from '../../runtime/abort.ts'
import { ReadBatch, RecordBatch } from '../../storage/record-batch.ts'
import type { EngineContext } from '../context.ts'
import { closedError } from '../errors.ts'
import { ReadCursor } from '../log/follow.ts'
import type { ReadBudget } from '../log/read-budget.ts'
import type { StreamLog } from '../log/stream-log.ts'
import type { StreamTable, StreamTarget } from '../streams/table.ts'
import type { Admission } from './admission.ts'
import type { Deadlines } from './deadlines.ts'

export interface OpenReadOptions extends ReadPolicy {
  readonly heartbeats?: boolean | 'first' | undefined
  /** Ends the read with its token, and is released when the read is over. */
  readonly watch?: { readonly ended: SharedSignal; readonly release: () => void } | undefined
}

export interface StreamDescription {
  /** Identifies the stream: no other one of the storage ever had it. */
  readonly id: string
  readonly metadata: StreamMetadata
  /** The time at which it is deleted; undefined is never. */
  readonly expiry: Expiry | undefined
  readonly tail: StreamTail
  readonly trimPoint: number
}

export interface ReadContext extends EngineContext {
  readonly table: StreamTable
  readonly admission: Admission
  readonly readBudget: ReadBudget
  readonly deadlines: Deadlines
}

/** Opens reads, within the limits of {@link Admission}. */
export class ReadService {
  readonly #context: ReadContext
  readonly #open = new Set<ReadCursor>()

  constructor(context: ReadContext) {
    this.#context = context
  }

  get openReads(): number {
    return this.#open.size
  }

  /** Opens a read session. Resolves to undefined if it ends at once. Rejects with `range_not_satisfiable`. */
  async open(
    target: StreamTarget,
    query: ReadQuery,
    options: OpenReadOptions,
  ): Promise<ReadCursor | undefined> {
    const opened = await this.#openCursor(target, query, 'session', options)
    return opened instanceof ReadCursor ? opened : undefined
  }

  /** Reads one batch (docs/protocol.md "Unary reads"). With `waitMs`, a long poll, which the signal ends. */
  async batch(
    target: StreamTarget,
    query: ReadQuery,
    signal: AbortSignal | undefined,
    options: OpenReadOptions,
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    const { usage } = this.#context
    const { basin } = target.ref
    const opening = this.#openCursor(target, query, 'unary', options)
    const cursor = await unlessAborted(signal, opening, (late) => late instanceof ReadCursor && late.close())
    if (!(cursor instanceof ReadCursor)) {
      usage.unaryRead(basin)
      const empty = mergeBatches([])
      // Published clients of the hosted service get no tail here.
      return options.allowsEmpty === 'always' ? empty.withTail(cursor) : empty
    }
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
    { heartbeats = false, watch, ...policy }: OpenReadOptions,
  ): Promise<ReadCursor | StreamTail> {
    assertReadQuery(query)
    const { table, admission, readBudget, usage, deadlines, clock, random, trimGraceMs, closing } =
      this.#context
    const { basin } = target.ref
    const ends: (() => void)[] = [admission.openSession()]
    if (watch !== undefined) ends.push(watch.release)
    const end = () => {
      for (const endOne of ends.splice(0)) endOne()
    }
    try {
      const { log, release } = await table.lease(target, 'read')
      ends.push(release)
      deadlines.noteRead(log)
      const reader = log.codec.reader(target.key)
      const tail = streamTailOf(log.head)
      const outcome = planRead(query, kind, log.head, policy, clock.now() - trimGraceMs)
      if (outcome.kind === 'unsatisfiable') throw unsatisfiable(tail)
      if (outcome.kind === 'empty') {
        if (kind === 'session') usage.streamingRead(basin)()
        end()
        return tail
      }
      // A unary read has delivered nothing until it succeeds as a whole.
      const meter = kind === 'session' ? usage : undefined
      const options = { reader, budget: readBudget, clock, random, heartbeats, meter, onClose: end }
      const cursor = new ReadCursor(log, outcome.plan, options)
      this.#open.add(cursor)
      ends.push(
        () => this.#open.delete(cursor),
        () => cursor.close(),
      )
      if (watch !== undefined) ends.push(onAbort(watch.ended, () => cursor.fail(watch.ended.reason)))
      // `close` may have run before the cursor was added.
      if (closing.aborted) cursor.fail(closedError())
      const hasRecord = await cursor.locate()
      const located = afterLocating(outcome.plan, hasRecord === true, policy)
      if (located === 'unsatisfiable') throw unsatisfiable(tail)
      if (kind === 'session') ends.push(usage.streamingRead(basin))
      if (located === 'read') return cursor
      end()
      return tail
    } catch (error) {
      end()
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
