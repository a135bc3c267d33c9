import type { SessionAppender } from '../../api/append-session.ts'
import { type AppendBatch, ownBytes } from '../../model/append-input.ts'
import { HeadwaterError } from '../../model/errors.ts'
import type { AppendAck } from '../../model/info.ts'
import type { EngineContext } from '../context.ts'
import { AppendGroup, type AppendListener } from '../log/append-recovery.ts'
import type { StreamLease, StreamLog } from '../log/stream-log.ts'
import { assertIsTarget, newAttempts, type StreamTable, type StreamTarget } from '../streams/table.ts'
import type { Admission, AppendReservation } from './admission.ts'
import type { BackgroundWork } from './background.ts'

export interface AppendContext extends EngineContext {
  readonly table: StreamTable
  readonly admission: Admission
  readonly work: BackgroundWork
}

/** Appends to streams, within the limits of {@link Admission}. */
export class AppendService {
  readonly #context: AppendContext

  constructor(context: AppendContext) {
    this.#context = context
  }

  /**
   * Appends a batch and releases its reservation. Calls for one stream take effect in order. An append that
   * is under way when this engine deletes the stream fails; one that finds its stream deleted by another
   * engine resolves the name again.
   */
  append(target: StreamTarget, batch: AppendBatch, reservation: AppendReservation): Promise<AppendAck> {
    return new Promise((resolve, reject) => {
      const append = new PendingAppend(this.#context, { target, batch, reservation, resolve, reject })
      const log = this.#context.table.get(target.ref)
      if (log !== undefined) append.appendTo(log)
      else append.open()
    })
  }

  /** Opens the appender of an append session. Rejects with `rate_limited` when too many sessions are open. */
  async openAppender(target: StreamTarget): Promise<SessionAppender> {
    const { table, admission } = this.#context
    const endSession = admission.openSession()
    let lease: StreamLease | undefined
    const release = () => {
      lease?.release()
      endSession()
    }
    try {
      lease = await table.lease(target, 'append')
      const { log } = lease
      log.codec.checkKey(target.key)
      const group = new AppendGroup()
      return {
        group,
        prepare: (batch, reserved) => {
          ownBytes(batch)
          // Made by the same engine's `Admission`.
          const reservation = reserved as AppendReservation
          return (started) =>
            new Promise((resolve, reject) => {
              const call = { target, batch, reservation, resolve, reject, group, started }
              new PendingAppend(this.#context, call).appendTo(log)
            })
        },
        release,
      }
    } catch (error) {
      release()
      throw error
    }
  }
}

interface AppendCall {
  readonly target: StreamTarget
  readonly batch: AppendBatch
  readonly reservation: AppendReservation
  readonly resolve: (ack: AppendAck) => void
  readonly reject: (error: unknown) => void
  /** Of a session, which appends to the log that it was opened with. */
  readonly group?: AppendGroup
  readonly started?: () => void
}

/** One append on its way to a log and back. */
class PendingAppend implements AppendListener {
  readonly #context: AppendContext
  readonly #call: AppendCall
  /** Those left to resolve the name again if the stream is gone. */
  readonly #attempts = newAttempts()
  #log!: StreamLog
  #askedAt = 0
  #startedAt = 0

  constructor(context: AppendContext, call: AppendCall) {
    this.#context = context
    this.#call = call
    if (call.group !== undefined) this.#attempts.left = 0
  }

  open(): void {
    this.#context.table
      .open(this.#call.target, 'append', (log) => this.appendTo(log), this.#attempts)
      .catch((error: unknown) => this.#fail(error))
  }

  appendTo(log: StreamLog): void {
    this.#log = log
    this.#askedAt = this.#context.clock.now()
    // An append that waits is not in the log yet, so a lease keeps the log in the table.
    const { release } = log.lease()
    this.#call.reservation.start(() => {
      this.#send()
      release()
    })
  }

  acked(ack: AppendAck): void {
    this.#call.reservation.release()
    const { usage, work, clock, onBackgroundError } = this.#context
    const { basin, logId, config } = this.#log.document
    const at = clock.now()
    try {
      // Before the caller sees the ack, so that metrics include it.
      usage.appended({
        basin,
        logId,
        storageClass: config.storageClass ?? 'express',
        records: ack.duplicate ? 0 : ack.end.seqNum - ack.start.seqNum,
        meteredBytes: ack.duplicate ? 0 : this.#call.batch.meteredBytes,
        connection: this.#call.target.connection,
        at,
        queueMs: this.#startedAt - this.#askedAt,
        ackMs: at - this.#startedAt,
      })
    } catch (error) {
      // A durable append is acknowledged even if metering it fails.
      onBackgroundError(error)
    }
    if (at >= work.overdueAt) work.restart()
    this.#call.resolve(ack)
  }

  failed(error: unknown): void {
    if (isGone(error) && !this.#log.isDeletedHere && this.#attempts.left-- > 0) this.open()
    else this.#fail((isGone(error) && this.#log.loss) || error)
  }

  #send(): void {
    const { target, batch, group, started } = this.#call
    this.#startedAt = this.#context.clock.now()
    started?.()
    try {
      assertIsTarget(target, this.#log.document.logId)
      this.#log.append(batch, target.key, this, group)
    } catch (error) {
      // Before the caller learns of it: the next append of the group may follow in the same turn.
      group?.fail(error)
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    this.#call.reservation.release()
    this.#call.reject(error)
  }
}

function isGone(error: unknown): boolean {
  return HeadwaterError.is(error) && error.code === 'stream_deletion_pending'
}
