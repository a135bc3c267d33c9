import type { AppendBatch } from '../model/append-input.ts'
import { HeadwaterError } from '../model/errors.ts'
import type { AppendAck } from '../model/info.ts'
import type { AppendGroup } from './append-group.ts'
import type { CreationPolicy, EngineContext, StreamRef, StreamUse } from './context.ts'
import { streamKey } from './documents.ts'
import { closedError, deletedError } from './errors.ts'
import type { StreamLog } from './stream-log.ts'
import type { HeldStream } from './stream-logs.ts'

/** How often a name is looked up again that others delete and make anew under way. */
export const INCARNATIONS_MAX = 10

interface Opening {
  readonly ref: StreamRef
  readonly creation: CreationPolicy
  readonly opened: (log: StreamLog) => void
  readonly failed: (error: unknown) => void
}

/** Finds the stream of a data operation, creating it where that is allowed. */
export class StreamAccess {
  readonly #engine: EngineContext
  /** Who waits for a name that is being looked up, in order. */
  readonly #opening = new Map<string, Opening[]>()

  constructor(engine: EngineContext) {
    this.#engine = engine
  }

  /** Resolves to the stream, held so that it stays the one object for its log until `release` is called. */
  hold({ ref, creation, key }: StreamUse, purpose: 'append' | 'read'): Promise<HeldStream> {
    return new Promise((resolve, reject) => {
      const onOpened = (log: StreamLog) => {
        try {
          // A read may be one of the tail only, which needs no key.
          if (purpose === 'append') log.cipher?.required(key)
          resolve({ log, release: log.pin() })
        } catch (error) {
          reject(error)
        }
      }
      this.#open(ref, purpose, creation, onOpened, reject)
    })
  }

  /**
   * Appends made one after the other reach the stream in that order, also while its name is still being looked up. One that is under way
   * when this engine deletes the stream fails; one that finds its stream deleted by another engine looks the name up again.
   */
  append(use: StreamUse, batch: AppendBatch): Promise<AppendAck> {
    return new Promise((resolve, reject) => {
      const attempt = (left: number) => {
        const onOpened = (log: StreamLog) => {
          this.appendTo(log, use, batch).then(resolve, (error: unknown) => {
            const isGone = HeadwaterError.is(error) && error.code === 'stream_deletion_pending'
            if (isGone && !log.isDeletedHere && left > 0) attempt(left - 1)
            else reject(error)
          })
        }
        this.#open(use.ref, 'append', use.creation, onOpened, reject)
      }
      attempt(INCARNATIONS_MAX)
    })
  }

  /** Appends to this incarnation of a stream, within the budget of bytes in flight; tells when it is admitted to that. */
  appendTo(
    log: StreamLog,
    use: StreamUse,
    batch: AppendBatch,
    group?: AppendGroup,
    admitted?: () => void,
  ): Promise<AppendAck> {
    const { appendBudget } = this.#engine
    const { clock } = this.#engine.settings
    return new Promise((resolve, reject) => {
      const { cipher } = log
      const key = cipher?.required(use.key)
      const unpin = log.pin()
      const askedAt = clock.now()
      appendBudget.acquire(batch.meteredBytes, () => {
        admitted?.()
        const permittedAt = clock.now()
        const release = () => {
          unpin()
          appendBudget.release(batch.meteredBytes)
        }
        const appended =
          cipher === undefined ? log.append(batch, group) : log.appendSealed(cipher, key!, batch, group)
        appended.then(
          (ack) => {
            release()
            resolve(ack)
            this.#recordUsage(log, use, batch, askedAt, permittedAt)
          },
          (error: unknown) => {
            release()
            reject(error)
          },
        )
      })
    })
  }

  /** In the turn in which the append is acknowledged: who has the ack finds it in the metrics. */
  #recordUsage(
    { document }: StreamLog,
    { connection }: StreamUse,
    { records, meteredBytes }: AppendBatch,
    askedAt: number,
    permittedAt: number,
  ): void {
    const { clock, onBackgroundError } = this.#engine.settings
    try {
      const at = clock.now()
      // Member by member: this is done for every append, and spreading costs more than all the rest.
      this.#engine.usage.appended({
        basin: document.basin,
        logId: document.logId,
        storageClass: document.config.storageClass,
        records: records.length,
        meteredBytes,
        connection,
        at,
        permitMs: permittedAt - askedAt,
        ackMs: at - permittedAt,
      })
    } catch (error) {
      onBackgroundError(error)
    }
  }

  #open(
    ref: StreamRef,
    purpose: 'append' | 'read',
    creation: CreationPolicy,
    opened: (log: StreamLog) => void,
    failed: (error: unknown) => void,
  ): void {
    if (this.#engine.closing.aborted) {
      failed(closedError())
      return
    }
    const key = `${purpose}\0${streamKey(ref.basin, ref.stream)}`
    const opening = this.#opening.get(key)
    if (opening !== undefined) {
      opening.push({ ref, creation, opened, failed })
      return
    }
    const log = this.#engine.logs.atHand(ref)
    if (log !== undefined && this.#canUse(log)) {
      opened(log)
      return
    }
    this.#begin(key, purpose, [{ ref, creation, opened, failed }])
  }

  #begin(key: string, purpose: 'append' | 'read', waiting: Opening[]): void {
    const first = waiting[0]!
    const other = waiting.findIndex((one) => !asksTheSame(one, first))
    const asked = other === -1 ? waiting.length : other
    this.#opening.set(key, waiting)
    this.#lookUp(first.ref, purpose, first.creation).then(
      ({ log, release }) => {
        this.#settle(key, waiting, (one) => one.opened(log))
        release()
      },
      (error: unknown) => {
        // Who came later may know better: the stream may have been created since it was looked for, or be theirs to create.
        const later = waiting.splice(asked)
        this.#settle(key, waiting, (one) => one.failed(error))
        if (later.length > 0) this.#begin(key, purpose, later)
      },
    )
  }

  #settle(key: string, waiting: Opening[], tell: (one: Opening) => void): void {
    // Those who come while the others are told still line up behind them.
    for (const one of waiting) tell(one)
    this.#opening.delete(key)
  }

  async #lookUp(ref: StreamRef, purpose: 'append' | 'read', policy: CreationPolicy): Promise<HeldStream> {
    for (let i = 0; i < INCARNATIONS_MAX; i++) {
      const found = await this.#engine.logs.find(ref)
      if (found !== undefined) return await this.#prepared(found)
      // Whoever asked for the basin or the stream before, with a configuration perhaps, comes first.
      await this.#engine.rest.creationsBegan()
      const { createOnFirstUse } = await this.#engine.rest.load()
      await createOnFirstUse(this.#engine, ref, purpose, policy)
    }
    throw deletedError()
  }

  /** The code of the ciphers is loaded when the first encrypted stream is used: from then on it is at hand, and appends wait for nothing. */
  #canUse(log: StreamLog): boolean {
    return log.document.cipher === null || this.#engine.settings.ciphers.isLoaded
  }

  async #prepared(found: HeldStream): Promise<HeldStream> {
    try {
      if (!this.#canUse(found.log)) await this.#engine.settings.ciphers.load(this.#engine.closing)
      return found
    } catch (error) {
      found.release()
      throw error
    }
  }
}

/** Whether one look-up can fail for both. */
function asksTheSame(one: Opening, other: Opening): boolean {
  return (
    one.creation.always === other.creation.always &&
    one.creation.config === other.creation.config &&
    one.ref.shownAs === other.ref.shownAs
  )
}
