import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { type ReadOptions, ReadSession, type SessionOf } from '../../src/api/read-session.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import type { ReadQuery } from '../../src/model/read-query.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers, assertSignal, type MembersOf, oneOf, unchecked } from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { LazyModule } from '../../src/runtime/lazy-module.ts'
import { SerialQueue } from '../../src/runtime/serial-queue.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import { type Coordinator, coordinate } from './coordinator.ts'
import type { EarlierRecords, FetchEarlierOptions, RestartOptions } from './earlier-history.ts'
import { LocalCopy } from './local-copy.ts'
import { MirrorRun } from './mirror-run.ts'
import { assertStart, type MirrorStart } from './mirror-start.ts'
import type { Outbox } from './outbox.ts'
import { browserWakeUps, type WakeUps } from './page-events.ts'
import { StateCell } from './state-cell.ts'
import { assertEnds } from './synced-ends.ts'

export type { MirrorStart } from './mirror-start.ts'

/** The code that few mirrors need: restarts, and earlier history. */
const HISTORY = new LazyModule('earlier history', () => import('./earlier-history.ts'))

/**
 * Options of `mirror`.
 *
 * ```ts
 * const stop = new AbortController()
 * const copy = mirror(server.basin('app').stream('log'), basin.stream('log'), {
 *   from: { tailOffset: 1000 },
 *   signal: stop.signal,
 *   random: Math.random,
 * })
 * ```
 */
export interface MirrorOptions {
  /**
   * The start of a copy that has no records yet: at most one of `seqNum`, `timestamp` and `tailOffset`, as in
   * a read. By default, the first record. A start beyond the tail is moved to the tail.
   */
  readonly from?: MirrorStart | undefined
  /** Closes the mirror when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** Returns random numbers in [0, 1), for pauses between attempts. `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** @internal Elects the mirror that copies. By default among the tabs of a browser. */
  readonly coordinator?: Coordinator | undefined
  /** @internal What ends a pause between attempts early. By default the events of a browser. */
  readonly wakeUps?: WakeUps | undefined
  /** @internal Sends while this mirror is the one that copies, and is not stopped. `run` must not reject. */
  readonly outbox?: Pick<Outbox, 'run' | 'log'> | undefined
}

const MIRROR_OPTIONS: MembersOf<MirrorOptions> = {
  from: assertStart,
  signal: assertSignal,
  random: 'function',
  coordinator: 'function',
  wakeUps: 'function',
  outbox: unchecked,
}

const MIRROR_READ_OPTIONS: MembersOf<MirrorReadOptions> = {
  as: oneOf(['string', 'bytes']),
  signal: assertSignal,
}

/**
 * Options of `read` of a mirror.
 *
 * ```ts
 * const stop = new AbortController()
 * const options: MirrorReadOptions & { as: 'bytes' } = { as: 'bytes', signal: stop.signal }
 * for await (const { body } of copy.read({ seqNum: 0 }, options)) console.log(body.length)
 * ```
 */
export type MirrorReadOptions = Pick<ReadOptions, 'as' | 'signal'>

/**
 * A copy of a remote stream on this device, returned by {@link mirror}: gap-free, in order, with the sequence
 * numbers, timestamps, headers and commands of the remote stream. It resumes after every interruption and
 * follows the remote stream live. Read the copy as any stream; only the mirror appends to it.
 *
 * Mirrors of one copy in several tabs share one connection: one of them copies, and another one takes over
 * when it is closed, frozen or killed. All of them show the same state.
 *
 * ```ts
 * console.log(copy.remote.name, copy.local.name, copy.state.kind)
 * copy.retry()
 * await copy.restart({ from: { tailOffset: 100 } })
 * await copy.close()
 * ```
 */
export class Mirror {
  /** The remote stream. */
  readonly remote: Stream
  /** The copy. */
  readonly local: Stream
  readonly #copy: LocalCopy
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #closing = new AbortController()
  readonly #run: MirrorRun
  readonly #ended: Promise<void>
  readonly #from: MirrorStart
  readonly #outbox: MirrorOptions['outbox']
  readonly #fetches = new SerialQueue()
  /** Calls that change the copy. */
  readonly #underWay = new Set<Promise<unknown>>()

  /** @internal */
  constructor(remote: Stream, local: Stream, options: MirrorOptions) {
    const { from = {}, signal, random = Math.random } = options
    this.remote = remote
    this.local = local
    this.#from = from
    this.#outbox = options.outbox
    this.#copy = new LocalCopy(local)
    const ignoreSignals = onAnyAbort([signal, local.context.closing], () => this.#close())
    this.#run = new MirrorRun({
      remote,
      copy: this.#copy,
      from,
      random,
      clock: local.context.clock,
      state: this.#state,
      signal: this.#closing.signal,
      coordinator: options.coordinator ?? coordinate,
      wakeUps: options.wakeUps ?? browserWakeUps,
      outbox: options.outbox,
    })
    this.#ended = this.#run.run().finally(() => {
      ignoreSignals()
      this.#state.end({ kind: 'closed' })
    })
  }

  /** The current state. */
  get state(): MirrorState {
    return this.#state.current
  }

  /** Emits the current state, then each change. Completes when the mirror is closed. */
  get state$(): Observable<MirrorState> {
    return this.#state.states$
  }

  /** Connects at once: ends the pause of a mirror that is offline, and continues one that has stopped. */
  retry(): void {
    this.#run.retry()
  }

  /**
   * Deletes the copy and starts again. Resolves when the new copy exists; the mirror then fills it. The old
   * copy is kept if the remote stream cannot be read. If it is another stream now, records of the outbox that
   * the one before may have stored are parked. Rejects with the errors of a read and of the local storage,
   * and with `closed` if the mirror is closed before.
   *
   * ```ts
   * copy.state$.subscribe((state) => {
   *   if (state.kind === 'stopped' && state.reason === 'trimmed') void copy.restart()
   * })
   * ```
   */
  async restart(options: RestartOptions = {}): Promise<void> {
    const { assertRestart, restartCopy, untilAborted } = await HISTORY.load()
    assertRestart(options)
    const { from = this.#from, signal } = options
    await untilAborted([signal, this.#closing.signal], this.#underWay, (ending) =>
      restartCopy(this.remote, from, this.#copy, ending, this.#outbox?.log, () => this.#run.replaced()),
    )
  }

  /**
   * Stores up to `count` records before the first one on this device, so that `read` finds them without a
   * connection. They are deleted when the remote stream trims them, and by `restart`. The call requires a
   * copy, which exists at the latest when the mirror is live.
   *
   * Errors, in addition to those of a read:
   * - `stream_not_found` when this device has no copy yet
   * - `stream_deleted` when the remote stream is not the one that was copied
   * - `range_not_satisfiable` when the remote stream is trimmed during the call
   * - `closed` when the mirror is closed before the records are stored
   * - `storage`, `storage_full` when the local storage fails
   *
   * ```ts
   * const { count, start } = await copy.fetchEarlier({ count: 1_000 })
   * ```
   */
  async fetchEarlier(options: FetchEarlierOptions): Promise<EarlierRecords> {
    const { assertFetch, fetchEarlier, untilAborted } = await HISTORY.load()
    assertFetch(options)
    const { count, signal } = options
    return untilAborted([signal, this.#closing.signal], this.#underWay, (ending) =>
      this.#fetches.run(() => fetchEarlier(this.remote, this.local, count, ending)),
    )
  }

  /**
   * Returns a session that reads the records on this device: those that `fetchEarlier` stored, then those of
   * the copy. By default it starts at the first one. With `waitMs`, it continues as records arrive. The
   * session has the members of `stream.read`.
   *
   * ```ts
   * for await (const { seqNum, body } of copy.read({ tailOffset: 5_000 })) console.log(seqNum, body)
   * ```
   */
  read(
    query?: ReadQuery,
    options?: Omit<MirrorReadOptions, 'as'> & { readonly as?: 'string' | undefined },
  ): SessionOf<'string'>
  read(
    query: ReadQuery | undefined,
    options: MirrorReadOptions & { readonly as: 'bytes' },
  ): SessionOf<'bytes'>
  read(query: ReadQuery = {}, options: MirrorReadOptions = {}): SessionOf<RecordFormat> {
    assertMembers(options, MIRROR_READ_OPTIONS, 'options')
    const { as = 'string', signal } = options
    const open = async (heartbeats: boolean) => {
      const { openAcross } = await HISTORY.load()
      return openAcross(this.local, query, heartbeats)
    }
    return new ReadSession(open, (batch) => batch.as(as), signal)
  }

  /** Ends the mirror. The copy is kept. Resolves when all work has ended. */
  async close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    this.#close()
    await unlessAborted(signal, Promise.allSettled([this.#ended, ...this.#underWay]))
  }

  #close(): void {
    this.#closing.abort(new HeadwaterError('closed', 'the mirror is closed'))
  }

  /** Closes the mirror for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }
}

/**
 * Copies a remote stream to a local one and keeps the copy up to date until it is closed. `remote` is a
 * stream of a client; `local` is one of an engine on this device, to which nothing else appends. Connects in
 * the background: see `state`.
 *
 * Throws `invalid` for options that are not valid.
 *
 * ```ts
 * const server = await connect({ url: 'https://streams.example' })
 * const hw = await open({ storage: indexedDb('my-app') })
 * const copy = mirror(server.basin('my-app').stream('chats/42'), hw.basin('my-app').stream('chats/42'))
 * copy.state$.subscribe((state) => console.log(state.kind))
 * ```
 */
export function mirror(remote: Stream, local: Stream, options: MirrorOptions = {}): Mirror {
  assertMembers(options, MIRROR_OPTIONS, 'options')
  assertEnds(remote, local)
  return new Mirror(remote, local, options)
}
