import type { AppendBatch } from '../model/append-input.ts'
import type { AppendAck } from '../model/info.ts'
import type { StreamPosition } from '../model/position.ts'
import type { ReadQuery } from '../model/read-query.ts'
import type { ReadBatch } from '../storage/record-batch.ts'
import { unlessAborted } from './abort.ts'
import type { AppendSession, AppendSessionOptions } from './append-session.ts'
import type { EngineContext, StreamUse } from './context.ts'
import type { ReadCursor } from './read-cursor.ts'
import type { Reading, ReadSessionOptions } from './reading.ts'
import type { RecordService } from './services.ts'
import type { StreamAccess } from './stream-access.ts'
import { opened } from './stream-logs.ts'

/** Everything that is done with the records of streams. */
export class Records implements RecordService {
  readonly #engine: EngineContext
  readonly #access: StreamAccess
  readonly #reading: Reading

  constructor(engine: EngineContext, access: StreamAccess, reading: Reading) {
    this.#engine = engine
    this.#access = access
    this.#reading = reading
  }

  append(use: StreamUse, batch: AppendBatch): Promise<AppendAck> {
    return this.#access.append(use, batch)
  }

  async appendSession(use: StreamUse, options: AppendSessionOptions): Promise<AppendSession> {
    options.signal?.throwIfAborted()
    const { settings, closing, rest, pendingBytes } = this.#engine
    const held = await opened(this.#engine.sessions, () => this.#access.hold(use, 'append'))
    try {
      const { AppendSession } = await unlessAborted(options.signal, rest.load())
      return new AppendSession(this.#access, use, held, settings.limits.sessionInFlightBytes, {
        ...options,
        closing,
        clock: settings.clock,
        pendingBytes,
      })
    } catch (error) {
      held.release()
      throw error
    }
  }

  readSession(
    use: StreamUse,
    query: ReadQuery,
    options: ReadSessionOptions,
  ): Promise<ReadCursor | undefined> {
    return this.#reading.session(use, query, options)
  }

  readBatch(use: StreamUse, query: ReadQuery, signal: AbortSignal | undefined): Promise<ReadBatch> {
    return this.#reading.unary(use, query, signal)
  }

  async checkTail(use: StreamUse): Promise<StreamPosition> {
    const tail = await this.#reading.tail(use)
    this.#engine.usage.operation('check-tail', use.ref.basin)
    return tail
  }
}
