import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError } from '../../src/model/errors.ts'
import { assertMembers, assertSignal, type MembersOf, unchecked } from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import { assertStart, type MirrorStart, type MirrorState } from '../../src/sync/mirror.ts'
import { type Coordinator, coordinate } from './coordinator.ts'
import { LocalCopy } from './local-copy.ts'
import { MirrorRun } from './mirror-run.ts'
import type { MirrorOutbox } from './outbox.ts'
import { browserWakeUps, type WakeUps } from './page-events.ts'
import { StateCell } from './state-cell.ts'
import { assertEnds } from './synced-ends.ts'

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
  /** @internal Whether to create the remote stream if it is missing and nothing was copied. False by default. */
  readonly create?: boolean | undefined
  /** @internal Whether it may connect, before `stand` says otherwise. True by default. */
  readonly stands?: boolean | undefined
  /** Closes the mirror when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** Returns random numbers in [0, 1), for pauses between attempts. `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** @internal Elects the mirror that copies. By default among the tabs of a browser. */
  readonly coordinator?: Coordinator | undefined
  /** @internal What ends a pause between attempts early. By default the events of a browser. */
  readonly wakeUps?: WakeUps | undefined
  /** @internal Sends while this mirror is the one that copies, and is not stopped. `run` must not reject. */
  readonly outbox?: MirrorOutbox | undefined
}

const MIRROR_OPTIONS: MembersOf<MirrorOptions> = {
  from: assertStart,
  create: 'boolean',
  stands: 'boolean',
  signal: assertSignal,
  random: 'function',
  coordinator: 'function',
  wakeUps: 'function',
  outbox: unchecked,
}

/** Options of `restart`. */
export interface RestartOptions extends CallOptions {
  /** The start of the new copy. By default that of the mirror. */
  readonly from?: MirrorStart | undefined
}

const RESTART_OPTIONS: MembersOf<RestartOptions> = { from: assertStart, signal: assertSignal }

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
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #closing = new AbortController()
  readonly #run: MirrorRun
  readonly #ended: Promise<void>
  readonly #from: MirrorStart
  readonly #restarts = new Set<Promise<unknown>>()

  /** @internal */
  constructor(remote: Stream, local: Stream, options: MirrorOptions) {
    const { from = {}, signal, random = Math.random } = options
    this.remote = remote
    this.local = local
    this.#from = from
    const ignoreSignals = onAnyAbort([signal, local.context.closing], () => this.#close())
    this.#run = new MirrorRun({
      remote,
      copy: new LocalCopy(local),
      from,
      create: options.create,
      stands: options.stands ?? true,
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

  /** @internal Lets the mirror connect, or wait until it may. */
  stand(isStanding: boolean): void {
    this.#run.stand(isStanding)
  }

  /**
   * Deletes the copy and starts again, `from` an earlier point if the app wants more records. Resolves when
   * the new copy exists; the mirror then fills it. The old copy is kept if the remote stream cannot be read.
   * Records of an outbox whose outcome is unknown are parked, unless the server says that the stream is still
   * the same one.
   * Rejects with the errors of a read and of the local storage, and with `closed` if the mirror is closed
   * before.
   *
   * ```ts
   * copy.state$.subscribe((state) => {
   *   if (state.kind === 'stopped' && state.reason === 'trimmed') void copy.restart()
   * })
   * ```
   */
  async restart(options: RestartOptions = {}): Promise<void> {
    assertMembers(options, RESTART_OPTIONS, 'options')
    const { from = this.#from, signal } = options
    const ending = new AbortController()
    const ignore = onAnyAbort([signal, this.#closing.signal], (reason) => ending.abort(reason))
    const restarting = this.#run.restart(from, ending.signal).finally(() => {
      ignore()
      this.#restarts.delete(restarting)
    })
    this.#restarts.add(restarting)
    await unlessAborted(ending.signal, restarting)
  }

  /** Ends the mirror. The copy is kept. Resolves when all work has ended. */
  async close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    this.#close()
    await unlessAborted(signal, Promise.allSettled([this.#ended, ...this.#restarts]))
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
