import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import type { Stream } from '../../src/api/stream.ts'
import { HeadwaterError, isStreamMissing } from '../../src/model/errors.ts'
import { assertMembers, assertSignal, type MembersOf, unchecked } from '../../src/model/validation.ts'
import { onAbort, onAnyAbort, SharedSignal, unlessAborted } from '../../src/runtime/abort.ts'
import {
  assertStart,
  decodeMessage,
  encodeMessage,
  type MirrorMessage,
  type MirrorStart,
  type MirrorState,
  startQuery,
} from '../../src/sync/mirror.ts'
import { BackOff, browserWakeUps, StateCell, type WakeUps } from './activity.ts'
import { type Coordinator, coordinate, type Membership } from './coordinator.ts'
import { LocalCopy } from './local-copy.ts'
import { Connection, type ConnectionEnd, endOfLocal, firstArrival } from './mirror-connection.ts'
import { assertEnds, type MirrorOutbox } from './outbox.ts'

/** Options of `mirror`. */
export interface MirrorOptions {
  /**
   * The start of a copy that has no records yet: at most one of `seqNum`, `timestamp` and `tailOffset`, as in
   * a read. By default, the first record. A start beyond the tail is moved to the tail.
   */
  readonly from?: MirrorStart | undefined
  /**
   * @internal Whether to create the remote stream if it is missing and nothing was copied. False by default.
   */
  readonly create?: boolean | undefined
  /** @internal Whether it may connect, before `permit` says otherwise. True by default. */
  readonly mayConnect?: boolean | undefined
  /** Closes the mirror when it aborts. */
  readonly signal?: AbortSignal | undefined
  /** Returns random numbers in [0, 1), for pauses between attempts. `Math.random` by default. */
  readonly random?: (() => number) | undefined
  /** @internal Elects the mirror that copies. By default among the tabs of a browser. */
  readonly coordinator?: Coordinator | undefined
  /** @internal What ends a pause between attempts early. By default the events of a browser. */
  readonly wakeUps?: WakeUps | undefined
  /** @internal Sends while this mirror is live, or the remote stream is missing. `run` must not reject. */
  readonly outbox?: MirrorOutbox | undefined
}

const MIRROR_OPTIONS: MembersOf<MirrorOptions> = {
  from: assertStart,
  create: 'boolean',
  mayConnect: 'boolean',
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

/** How often in succession a mirror looks for another copy at once. */
const REPLACEMENTS_MAX = 3

/**
 * A copy of a remote stream on this device, returned by {@link mirror}: gap-free, in order, with the sequence
 * numbers, timestamps, headers and commands of the remote stream. It resumes after every interruption and
 * follows the remote stream live. Read the copy as any stream; only the mirror appends to it.
 *
 * Mirrors of one copy in several tabs share one connection: one of them copies, and another one takes over
 * when it is closed, frozen or killed. All of them show the same state.
 */
export class Mirror {
  /** The remote stream. */
  readonly remote: Stream
  /** The copy. */
  readonly local: Stream
  readonly #options: MirrorOptions
  readonly #backOff: BackOff
  readonly #copy: LocalCopy
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #closing = new AbortController()
  readonly #restarts = new Set<Promise<unknown>>()
  readonly #ended: Promise<void>
  #mayConnect: boolean
  /** How often in succession the copy was another one. */
  #replacements = 0
  #membership: Membership | undefined
  #connection: Connection | undefined
  /** Aborts when the copy has to be looked up again. */
  #lookUp = new SharedSignal()

  /** @internal */
  constructor(remote: Stream, local: Stream, options: MirrorOptions) {
    this.remote = remote
    this.local = local
    this.#options = options
    this.#backOff = new BackOff(local.context.clock, options.random ?? Math.random)
    this.#copy = new LocalCopy(local, options.outbox?.log)
    this.#mayConnect = options.mayConnect ?? true
    const ignoreSignals = onAnyAbort([options.signal, local.context.closing], () => this.#close())
    this.#ended = this.#run().finally(() => {
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
    this.#connectAgain(true)
    this.#post({ kind: 'retry' })
  }

  /** @internal Lets the mirror connect, or wait until it may. */
  permit(mayConnect: boolean): void {
    if (mayConnect === this.#mayConnect) return
    this.#mayConnect = mayConnect
    this.#lookUp.abort(undefined)
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
    const { from = this.#options.from ?? {}, signal } = options
    const ending = new AbortController()
    const ignore = onAnyAbort([signal, this.#closing.signal], (reason) => ending.abort(reason))
    const restarting = this.#restart(from, ending.signal).finally(() => {
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

  /** Closes the mirror for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #close(): void {
    this.#closing.abort(new HeadwaterError('closed', 'the mirror is closed'))
  }

  /** Runs until the mirror is closed. */
  async #run(): Promise<void> {
    const { wakeUps = browserWakeUps } = this.#options
    const { signal } = this.#closing
    const ignoreWakeUps = wakeUps(
      () => this.#connectAgain(false),
      () => this.#connection?.lose(),
    )
    const ignoreSignal = onAbort(signal, () => this.#lookUp.abort(undefined))
    while (!signal.aborted) {
      this.#lookUp = new SharedSignal()
      try {
        if (this.#mayConnect) await this.#takePart(await this.#copy.ensure())
        else await this.#waitForTurn()
      } catch (error) {
        if (!signal.aborted) await this.#pauseAfter(endOfLocal(error), signal)
      }
    }
    ignoreSignal()
    ignoreWakeUps()
  }

  async #restart(from: MirrorStart, signal: AbortSignal): Promise<void> {
    const first = await firstArrival(this.remote, startQuery(from), signal)
    signal.throwIfAborted()
    await this.#copy.ensure()
    try {
      await this.#copy.begin(first, signal)
    } finally {
      // Also after a failure, the copy may be another one, or missing.
      this.#post({ kind: 'replaced' })
      this.#lookUp.abort(undefined)
      this.#backOff.wake(true)
    }
  }

  /** Ends a pause, or a connection that may be useless. */
  #connectAgain(isAsked: boolean): void {
    this.#connection?.check(isAsked)
    this.#backOff.wake(isAsked)
  }

  async #waitForTurn(): Promise<void> {
    this.#state.set({ kind: 'waiting' })
    await new Promise<void>((resolve) => onAbort(this.#lookUp, resolve))
  }

  /** Copies while this mirror is elected, until it must look up the copy again, or may not connect. */
  async #takePart(identity: string): Promise<void> {
    const { coordinator = coordinate } = this.#options
    const lookUp = this.#lookUp
    let term: AbortController | undefined
    let running = Promise.resolve()
    const onElected = (isElected: boolean) => {
      term?.abort()
      term = undefined
      if (!isElected) return this.#askForState()
      const elected = new AbortController()
      term = elected
      running = running.then(async () => {
        await this.#lead(identity, elected.signal)
        // Otherwise, it was not elected any more.
        if (!elected.signal.aborted) lookUp.abort(undefined)
      })
    }
    const onMessage = (value: unknown) => {
      const message = decodeMessage(value)
      if (message.kind === 'replaced') lookUp.abort(undefined)
      else if (term !== undefined) {
        if (message.kind === 'hello') this.#post({ kind: 'state', state: this.state })
        else if (message.kind === 'retry') this.#connectAgain(true)
      } else if (message.kind === 'state') this.#state.set(message.state)
    }
    if (lookUp.aborted) return
    const membership = coordinator(`headwater mirror ${identity}`, { onElected, onMessage })
    this.#membership = membership
    this.#askForState()
    await new Promise<void>((resolve) => onAbort(lookUp, resolve))
    term?.abort()
    membership.leave()
    this.#membership = undefined
    await running
  }

  /** Asks the elected mirror for its state. */
  #askForState(): void {
    this.#state.set({ kind: 'connecting' })
    this.#post({ kind: 'hello' })
  }

  /** Copies over one connection after another until the copy is another one or the signal aborts. */
  async #lead(identity: string, signal: AbortSignal): Promise<void> {
    const { from = {}, create, outbox } = this.#options
    let stopSending = () => {}
    const onState = (state: MirrorState) => {
      this.#setState(state)
      if (state.kind === 'live') stopSending = this.#send(signal)
    }
    const ends = { remote: this.remote, copy: this.#copy }
    const context = { ...ends, clock: this.local.context.clock, from, create, log: outbox?.log, onState }
    for (let isQuiet = false; !signal.aborted; ) {
      if (!isQuiet) this.#setState({ kind: 'connecting' })
      this.#connection = new Connection(context, signal)
      const end = await this.#connection.run(identity)
      this.#connection = undefined
      stopSending()
      if (signal.aborted) break
      isQuiet = end.kind === 'conflict'
      // An append may create the stream. There is no copy that could differ from it.
      if (end.kind === 'failed' && isStreamMissing(end.error)) stopSending = this.#send(signal)
      await this.#pauseAfter(end, signal)
      stopSending()
      if (end.kind === 'other-copy') break
    }
  }

  /** Lets the outbox send until the signal aborts or the returned function is called. */
  #send(signal: AbortSignal): () => void {
    const sending = new AbortController()
    const ignoreSignal = onAbort(signal, () => sending.abort())
    void this.#options.outbox?.run(sending.signal, () => this.#backOff.wake(false))
    return () => {
      ignoreSignal()
      sending.abort()
    }
  }

  /** Shows how a connection ended, and waits until the next attempt. */
  async #pauseAfter(end: ConnectionEnd, signal: AbortSignal): Promise<void> {
    const isOther = end.kind === 'other-copy'
    this.#replacements = isOther ? this.#replacements + 1 : 0
    if (isOther && this.#replacements <= REPLACEMENTS_MAX) return
    const hasFailed = isOther || end.kind === 'conflict' || (end.kind === 'failed' && !end.hasLasted)
    if (!hasFailed) this.#backOff.reset()
    if (end.kind === 'silent') return
    if (end.kind === 'stopped') {
      this.#setState(end)
      // Only the app can continue it.
      return this.#backOff.wait(undefined, signal, false)
    }
    const error = end.kind === 'failed' ? end.error : undefined
    await this.#backOff.afterFailure(error, signal, (state) => this.#setState(state))
  }

  #setState(state: MirrorState): void {
    this.#state.set(state)
    this.#post({ kind: 'state', state })
  }

  #post(message: MirrorMessage): void {
    this.#membership?.post(encodeMessage(message))
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
