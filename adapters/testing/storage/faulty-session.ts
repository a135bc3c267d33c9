import type { Clock } from '../../../src/storage/clock.ts'
import type {
  AppendRequest,
  CatalogChange,
  Collection,
  ListRange,
  ReadRange,
  ReclaimLimits,
  StorageSession,
} from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { Holds } from '../faults/holds.ts'
import { HandOvers } from './hand-overs.ts'
import { injectedError, lostAnswer } from './storage-errors.ts'
import type { StorageFaultPlan } from './storage-fault-plan.ts'
import type { StorageArguments, StorageOperation } from './storage-faults.ts'

type SessionOperation = Exclude<StorageOperation, 'open'>

/** A call that has not been answered. */
interface Flight {
  readonly operation: SessionOperation
  readonly reject: (error: unknown) => void
  /** Its caller was told that the answer is lost. What was not handed over by then never is. */
  isSevered: boolean
}

/** One engine's access to a storage, with faults. */
export class FaultySession implements StorageSession {
  /** Absent where the storage has none: that says something too. */
  readonly backgroundTurn?: NonNullable<StorageSession['backgroundTurn']>
  readonly #inner: StorageSession
  readonly #clock: Clock
  readonly #plan: StorageFaultPlan
  readonly #refusal: () => StorageFailure | undefined
  readonly #onClose: () => void
  readonly #onClosed: () => void
  /** With when each of them is over. */
  readonly #flights = new Map<Flight, Promise<void>>()
  readonly #holds = new Holds()
  readonly #handOvers = new HandOvers()
  #end: 'closed' | 'crashed' | undefined
  #stopWaiting: () => void = () => {}
  #closing: Promise<void> | undefined

  constructor(
    inner: StorageSession,
    storage: {
      readonly clock: Clock
      readonly plan: StorageFaultPlan
      /** Why nothing can be asked at the moment, if so. */
      readonly refusal: () => StorageFailure | undefined
      /** Nobody is to hear anything any more. */
      readonly onClose: () => void
      /** The storage below has let go. */
      readonly onClosed: () => void
    },
  ) {
    if (inner.backgroundTurn !== undefined) this.backgroundTurn = inner.backgroundTurn.bind(inner)
    this.#inner = inner
    this.#clock = storage.clock
    this.#plan = storage.plan
    this.#refusal = storage.refusal
    this.#onClose = storage.onClose
    this.#onClosed = storage.onClosed
  }

  get(collection: Collection, key: string) {
    return this.#call('get', [collection, key], () => this.#inner.get(collection, key))
  }

  list(collection: Collection, range: ListRange) {
    return this.#call('list', [collection, range], () => this.#inner.list(collection, range))
  }

  commit(changes: readonly CatalogChange[]) {
    return this.#call('commit', [changes], () => this.#inner.commit(changes))
  }

  head(logId: string) {
    return this.#call('head', [logId], () => this.#inner.head(logId))
  }

  append(request: AppendRequest) {
    return this.#call('append', [request], () => this.#inner.append(request))
  }

  read(logId: string, range: ReadRange) {
    return this.#call('read', [logId, range], () => this.#inner.read(logId, range))
  }

  reclaim(limits: ReclaimLimits) {
    return this.#call('reclaim', [limits], () => this.#inner.reclaim(limits))
  }

  measure(logIds: readonly string[]) {
    return this.#call('measure', [logIds], () => this.#inner.measure(logIds))
  }

  /** What is held back goes on at once. */
  close(): Promise<void> {
    this.#closing ??= this.#close().finally(this.#onClosed)
    return this.#closing
  }

  /** Nobody hears what comes of the calls in flight. */
  sever(): void {
    for (const flight of this.#flights.keys()) {
      flight.isSevered = true
      flight.reject(lostAnswer(flight.operation))
    }
    this.#holds.release()
  }

  /** Every call that is held back goes on. */
  release(): void {
    this.#holds.release()
  }

  /** The end of a process, as far as the storage sees it. Resolves when another one can open it. */
  async crash(): Promise<void> {
    this.#end ??= 'crashed'
    this.#onClose()
    this.sever()
    // A close that is under way has nobody left to wait for: a call that its storage holds for ever must not hold this one.
    this.#stopWaiting()
    this.#closing ??= this.#inner.close().finally(this.#onClosed)
    await this.#closing
  }

  async #close(): Promise<void> {
    this.#end = 'closed'
    this.#holds.release()
    this.#onClose()
    const crashed = new Promise<void>((resolve) => {
      this.#stopWaiting = resolve
    })
    await Promise.race([Promise.all(this.#flights.values()), crashed])
    await this.#inner.close()
  }

  #call<Operation extends SessionOperation, Result>(
    operation: Operation,
    args: StorageArguments<Operation>,
    make: () => Promise<Result>,
  ): Promise<Result> {
    const refusal = this.#ended() ?? this.#refusal()
    if (refusal !== undefined) return Promise.reject(refusal)
    return new Promise((resolve, reject) => {
      const flight: Flight = { operation, reject, isSevered: false }
      const done = this.#perform(flight, args, make)
        .then(resolve, reject)
        .finally(() => this.#flights.delete(flight))
      this.#flights.set(flight, done)
    })
  }

  /** Without a fault the call is handed over before this returns. */
  async #perform<Result>(
    flight: Flight,
    args: readonly unknown[],
    make: () => Promise<Result>,
  ): Promise<Result> {
    const { operation } = flight
    const injection = this.#plan.injectionOf(operation, args)
    const { holdMs, answerHoldMs, failure } = injection
    const logId = operation === 'append' ? (args[0] as AppendRequest).logId : undefined
    const hold = this.#holds.begin(this.#clock)
    const held = holdMs > 0 ? hold(holdMs) : undefined
    const turn = logId === undefined ? held : this.#handOvers.turn(logId, held)
    if (turn !== undefined) await turn
    const isMade = !flight.isSevered && (failure === undefined || failure.after)
    const made = isMade ? make() : undefined
    if (logId !== undefined) this.#handOvers.done(logId, turn)
    if (failure !== undefined && !failure.after) throw injectedError(injection, failure)
    if (made === undefined) throw lostAnswer(operation)
    if (answerHoldMs > 0) {
      await made.catch(() => {})
      await hold(answerHoldMs)
    }
    const answer = await made
    if (failure !== undefined) throw injectedError(injection, failure)
    if (Array.isArray(answer) && operation === 'read') {
      return answer.slice(0, this.#plan.keptOf(injection, answer.length)) as Result
    }
    return answer
  }

  #ended(): StorageFailure | undefined {
    if (this.#end === undefined) return undefined
    const message = this.#end === 'closed' ? 'the storage is closed' : 'the storage crashed: open it again'
    return new StorageFailure('closed', message, { nothingWritten: true })
  }
}
