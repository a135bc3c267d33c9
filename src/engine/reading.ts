import { afterLocating, planRead, type ReadKind, type ReadPolicy } from '../core/read-plan.ts'
import { concatBytes } from '../model/bytes.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { StreamPosition } from '../model/position.ts'
import { checkReadQuery, type ReadQuery } from '../model/read-query.ts'
import { ReadBatch, RecordBatch } from '../storage/record-batch.ts'
import { onAbort } from './abort.ts'
import { goneError } from './append-pipeline.ts'
import type { EngineContext, StreamRef } from './context.ts'
import { ReadCursor } from './read-cursor.ts'
import type { CreationPolicy, StreamAccess } from './stream-access.ts'
import type { StreamLog } from './stream-log.ts'

const INCARNATIONS_MAX = 10

/** The reads of an engine: plans them, opens them, counts them. */
export class Reading {
  readonly #engine: EngineContext
  readonly #access: StreamAccess
  #open = 0

  constructor(engine: EngineContext, access: StreamAccess) {
    this.#engine = engine
    this.#access = access
  }

  /** How many reads are open. */
  get open(): number {
    return this.#open
  }

  /** Opens a read session. Undefined: it has nothing to deliver and ends at once. Rejects with 416 `range_not_satisfiable`. */
  session(
    ref: StreamRef,
    query: ReadQuery,
    creation: CreationPolicy,
    options: ReadPolicy & { readonly heartbeats?: boolean | undefined },
  ): Promise<ReadCursor | undefined> {
    return this.#cursor(ref, query, 'session', creation, options)
  }

  /** Reads one batch (wire-behaviour.md 5.6). With `waitSeconds` it is a long poll, which the signal ends. */
  async unary(
    ref: StreamRef,
    query: ReadQuery,
    creation: CreationPolicy,
    signal: AbortSignal | undefined,
  ): Promise<ReadBatch> {
    signal?.throwIfAborted()
    const cursor = await this.#cursor(ref, query, 'unary', creation, {})
    if (cursor === undefined) return mergeBatches([])
    const ignoreSignal = signal && onAbort(signal, () => cursor.close())
    try {
      const batches: ReadBatch[] = []
      for (;;) {
        signal?.throwIfAborted()
        const event = await cursor.next()
        if (event?.kind !== 'batch') break
        batches.push(event.batch)
        // What was there is returned without waiting for more; of what comes live, the first append.
        if (event.batch.tail !== undefined || cursor.isAtTail) break
      }
      signal?.throwIfAborted()
      return mergeBatches(batches)
    } finally {
      ignoreSignal?.()
      cursor.close()
    }
  }

  async tail(ref: StreamRef, creation: CreationPolicy): Promise<StreamPosition> {
    return (await this.#fresh(ref, creation)).head.tail
  }

  async #cursor(
    ref: StreamRef,
    query: ReadQuery,
    kind: ReadKind,
    creation: CreationPolicy,
    options: ReadPolicy & { readonly heartbeats?: boolean | undefined },
  ): Promise<ReadCursor | undefined> {
    checkReadQuery(query)
    const log = await this.#fresh(ref, creation)
    const outcome = planRead(query, kind, log.head, options)
    if (outcome.kind === 'empty') return undefined
    if (outcome.kind === 'unsatisfiable') throw unsatisfiable(log.head.tail)
    const { plan } = outcome
    const { tail } = log.head
    this.#open++
    const onClose = () => {
      this.#open--
    }
    const cursor = new ReadCursor(this.#engine, log, plan, {
      heartbeats: options.heartbeats ?? false,
      onClose,
    })
    try {
      const hasRecord = await cursor.locate()
      if (afterLocating(plan, hasRecord) === 'unsatisfiable') throw unsatisfiable(tail)
    } catch (error) {
      cursor.close()
      throw error
    }
    return cursor
  }

  /** The stream with the head that the storage has now. */
  async #fresh(ref: StreamRef, creation: CreationPolicy): Promise<StreamLog> {
    for (let i = 0; i < INCARNATIONS_MAX; i++) {
      const log = await this.#access.open(ref, 'read', creation)
      if (await log.refresh()) return log
      this.#engine.logs.forget(log)
    }
    throw goneError()
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
