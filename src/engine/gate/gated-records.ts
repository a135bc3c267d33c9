import { type Grant, permits } from '../../core/permission.ts'
import type { AppendBatch } from '../../model/append-input.ts'
import type { AppendAck } from '../../model/info.ts'
import type { Operation } from '../../model/operations.ts'
import type { StreamPosition } from '../../model/position.ts'
import type { ReadQuery } from '../../model/read-query.ts'
import type { ReadBatch } from '../../storage/record-batch.ts'
import { onAbort } from '../abort.ts'
import type { TokenWatch } from '../access/open-tokens.ts'
import type { AppendSession, AppendSessionOptions } from '../append-session.ts'
import type { StreamUse } from '../context.ts'
import type { ReadCursor } from '../read-cursor.ts'
import type { ReadSessionOptions } from '../reading.ts'
import type { RecordService } from '../services.ts'
import { type Gate, prefixed, requirePermission } from './gate.ts'

/** The records of streams, as a caller may use them. */
export class GatedRecords implements RecordService {
  readonly #gate: Gate
  readonly #records: RecordService
  /** Appends are let through in the order in which they were made. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(gate: Gate, records: RecordService) {
    this.#gate = gate
    this.#records = records
  }

  append(use: StreamUse, batch: AppendBatch): Promise<AppendAck> {
    const permitted = this.#permitAppend(use, batch)
    const turn = this.#turn.then(() => permitted)
    this.#turn = turn.catch(() => {})
    return turn.then((meant) => this.#records.append(meant, batch))
  }

  async appendSession(use: StreamUse, options: AppendSessionOptions): Promise<AppendSession> {
    return this.#watched('append', use, (meant, watch, grant) =>
      this.#records.appendSession(meant, {
        ...options,
        ending: watch.ended,
        onEnd: watch.release,
        check: (batch) => requireCommands(grant, use, batch),
      }),
    )
  }

  async readSession(
    use: StreamUse,
    query: ReadQuery,
    options: ReadSessionOptions,
  ): Promise<ReadCursor | undefined> {
    return this.#watched('read', use, async (meant, { ended, release }) => {
      const cursor = await this.#records.readSession(meant, query, {
        ...options,
        ending: ended,
        onEnd: release,
      })
      if (cursor === undefined) release()
      return cursor
    })
  }

  async readBatch(use: StreamUse, query: ReadQuery, signal: AbortSignal | undefined): Promise<ReadBatch> {
    return this.#watched('read', use, async (meant, { ended, release }) => {
      // Either ends a long poll.
      const either = new AbortController()
      const ignores = [ended, signal].map((one) => one && onAbort(one, () => either.abort(one.reason)))
      try {
        return await this.#records.readBatch(meant, query, either.signal)
      } finally {
        for (const ignore of ignores) ignore?.()
        release()
      }
    })
  }

  async checkTail(use: StreamUse): Promise<StreamPosition> {
    const { grant } = await this.#gate.permit('check-tail', use.ref)
    return this.#records.checkTail(meantUse(grant, use))
  }

  async #permitAppend(use: StreamUse, batch: AppendBatch): Promise<StreamUse> {
    const { grant } = await this.#gate.permit('append', use.ref)
    const meant = meantUse(grant, use)
    requireCommands(grant, use, batch)
    return meant
  }

  /** Opens something that ends with the token. When opening fails, the token is not watched any more. */
  async #watched<Result>(
    operation: Operation,
    use: StreamUse,
    open: (meant: StreamUse, watch: TokenWatch, grant: Grant) => Promise<Result>,
  ): Promise<Result> {
    const identity = await this.#gate.permit(operation, use.ref)
    const meant = meantUse(identity.grant, use)
    const watch = await this.#gate.watch(identity)
    try {
      return await open(meant, watch, identity.grant)
    } catch (error) {
      watch.release()
      throw error
    }
  }
}

/** Throws 403 `permission_denied`, or 422 `invalid` for names that are none and one that is too long with its prefix. */
function meantUse(grant: Grant, use: StreamUse): StreamUse {
  const { always } = use.creation
  if (always) {
    requirePermission(grant, 'create-basin', { basin: use.ref.basin })
    requirePermission(grant, 'create-stream', use.ref)
  }
  const ref = prefixed(grant, use.ref)
  // What the basin grants is a stream with the basin's configuration, not with one of the caller's own.
  const creation = permits(grant, 'create-stream', ref) ? use.creation : { always }
  return { ...use, ref, creation }
}

/** Commands need permissions of their own beside that to append (rulings.md "Tokens"). */
function requireCommands(grant: Grant, { ref }: StreamUse, batch: AppendBatch): void {
  for (const { command } of batch.records) if (command) requirePermission(grant, command.kind, ref)
}
