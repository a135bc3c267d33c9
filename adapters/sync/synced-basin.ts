import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers } from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { codeOf } from '../../src/sync/failures.ts'
import type { MirrorState } from '../../src/sync/mirror-state.ts'
import { RecentUse } from '../../src/sync/recent-use.ts'
import { syncedNameProblem } from '../../src/sync/synced-names.ts'
import { BasinElection } from './basin-election.ts'
import { BasinEntry } from './basin-entry.ts'
import { BasinLeader } from './basin-leader.ts'
import { BasinNames } from './basin-names.ts'
import { ConnectionLimit } from './connection-limit.ts'
import { coordinate } from './coordinator.ts'
import { Discovery } from './discovery.ts'
import { LimitedStream } from './limited-stream.ts'
import type { MirrorMessage } from './mirror-messages.ts'
import { browserWakeUps } from './page-events.ts'
import { withRetries } from './pause.ts'
import { StateCell } from './state-cell.ts'
import type { BasinStream } from './stream-list.ts'
import {
  assertSyncedBasinOptions,
  BASIN_STREAM_OPTIONS,
  type BasinStreamOptions,
  type SyncedBasinOptions,
} from './synced-basin-options.ts'
import type { SyncedStream } from './synced-stream.ts'

/** The parts of a synced basin. */
interface BasinParts {
  readonly options: SyncedBasinOptions
  readonly clock: Clock
  /** The name of the election of the tabs. */
  readonly election: string
  readonly closing: AbortController
  readonly names: BasinNames
}

/**
 * The streams of a server below a prefix, kept in sync with streams on this device. Returned by
 * {@link syncedBasin}. The tabs of an app share the connections: one of them syncs for all.
 */
export class SyncedBasin {
  readonly #options: SyncedBasinOptions
  readonly #clock: Clock
  readonly #uses = new RecentUse()
  readonly #names: BasinNames
  readonly #closing: AbortController
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #limit: ConnectionLimit
  readonly #entries = new Map<string, BasinEntry>()
  readonly #election: BasinElection
  readonly #discovery: Discovery
  #leader: BasinLeader | undefined
  #term: AbortController | undefined
  /** Resolves once every stream has ended whose end has begun. */
  #ended: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | undefined

  /** @internal */
  constructor({ options, clock, election, closing, names }: BasinParts) {
    const { connectionsMax = 4, discoverMs: everyMs = 30_000, coordinator = coordinate } = options
    const { random = Math.random, wakeUps = browserWakeUps } = options
    this.#options = options
    this.#clock = clock
    this.#names = names
    this.#closing = closing
    this.#limit = new ConnectionLimit(connectionsMax)
    const onState = (state: MirrorState) => this.#setState(state)
    this.#discovery = new Discovery({ list: () => this.#list(), everyMs, clock, random, wakeUps, onState })
    this.#election = new BasinElection(coordinator, election, {
      onElected: (isElected) => this.#onElected(isElected),
      onMessage: (stream, message, isOwn) => this.#onMessage(stream, message, isOwn),
      idleStateOf: (name) => this.#idleStateOf(name),
    })
    this.#election.post({ kind: 'hello' })
  }

  /**
   * The state of the basin: `connecting`, `live` while the server can be reached, `offline`, `stopped` if the
   * token does not permit listing streams, or `closed`. Each stream has a state of its own.
   */
  get state(): MirrorState {
    return this.#state.current
  }

  /** Emits the current state, then each change. Completes when the synced basin is closed. */
  get state$(): Observable<MirrorState> {
    return this.#state.states$
  }

  /** All known streams in the order of their names, those without a connection as `waiting`. */
  get streams(): readonly BasinStream[] {
    return this.#names.list.streams
  }

  /** Emits the streams, and again when one is added or removed, or changes its state. */
  get streams$(): Observable<readonly BasinStream[]> {
    return this.#names.list.streams$
  }

  /**
   * Opens a stream below the prefix by its full name, whether it exists or not. It can be read and appended
   * to at once. Opening counts as a use: the stream connects before streams that were used earlier. Returns
   * the same handle as long as it is open. The handle need not be closed, and its `close` does not end the
   * sync of the stream.
   *
   * Throws `invalid` for a name that does not begin with the prefix or is too long, and `closed`.
   *
   * ```ts
   * const general = rooms.stream('rooms/general')
   * await general.append('hello')
   * ```
   */
  stream<Format extends RecordFormat = 'string'>(
    name: string,
    options: BasinStreamOptions<Format> = {},
  ): SyncedStream<Format> {
    assertMembers(options, BASIN_STREAM_OPTIONS, 'options')
    assertValid(syncedNameProblem(name, this.#names.prefix), 'name')
    this.#closing.signal.throwIfAborted()
    const { as = 'string', isBackground = false } = options
    this.#names.add(name)
    const handle = this.#entryOf(name, false).handle(as)
    if (!isBackground) this.#use(name)
    this.#leader?.plan()
    return handle as SyncedStream<RecordFormat> as SyncedStream<Format>
  }

  /** Connects at once, and continues streams that have stopped. */
  retry(): void {
    this.#election.post({ kind: 'retry' })
    this.#retry()
  }

  /** Ends the sync of all streams. Everything stays on this device. Neither basin is closed. */
  async close(options?: CallOptions): Promise<void> {
    const signal = signalOf(options)
    this.#closed ??= this.#close()
    await unlessAborted(signal, this.#closed)
  }

  /** Closes the synced basin for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #close(): Promise<void> {
    this.#closing.abort(new HeadwaterError('closed', 'the synced basin is closed'))
    this.#endTerm()
    this.#election.leave()
    for (const entry of this.#entries.values()) void this.#end(entry)
    this.#entries.clear()
    await this.#ended
    this.#names.list.end()
    this.#state.end({ kind: 'closed' })
  }

  #onElected(isElected: boolean): void {
    this.#endTerm()
    if (!isElected) {
      this.#state.set({ kind: 'connecting' })
      this.#election.post({ kind: 'hello' })
      return
    }
    const { random = Math.random, connectionsMax = 4, catchUpMs = Number.POSITIVE_INFINITY } = this.#options
    const term = new AbortController()
    this.#term = term
    const leader = new BasinLeader({
      clock: this.#clock,
      random,
      slots: connectionsMax - 1,
      catchUpMs,
      names: () => this.#names.byUse(this.#uses.names),
      stateOf: (name) => this.#names.list.stateOf(name),
      isFlushed: (name) => this.#entries.get(name)?.isFlushed === true,
      isReachable: () => this.state.kind === 'live' || this.state.kind === 'stopped',
      permitted: this.#election.permitted,
      permit: (name) => {
        const { mirror } = this.#entryOf(name, true)
        const { list } = this.#names
        // Otherwise its turn could end before its mirror has begun.
        if (list.stateOf(name).kind === 'stopped') list.setState(name, { kind: 'connecting' })
        this.#election.permit(name)
        // A mirror without a copy takes part in no election: it stops again, and says so.
        if (mirror.state.kind === 'stopped') mirror.retry()
      },
      withdraw: (name) => void this.#withdraw(name),
    })
    this.#leader = leader
    void this.#lead(leader, term.signal)
  }

  async #lead(leader: BasinLeader, signal: AbortSignal): Promise<void> {
    void this.#discovery.run(signal)
    await this.#repeat(() => this.#names.findOutboxes(), signal)
    if (signal.aborted) return
    // They may have been opened as copies only.
    for (const name of this.#election.permitted) this.#entryOf(name, true)
    const { used, others } = this.#names.byUse(this.#uses.names)
    const all = [...used, ...others]
    leader.due([...all.filter((name) => this.#names.hasOutbox(name)), ...all])
  }

  /** Repeats work on this device until it succeeds, fails permanently, or the signal aborts. */
  #repeat(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
    const { random = Math.random, wakeUps = browserWakeUps } = this.#options
    return withRetries(work, { clock: this.#clock, random, wakeUps, onState: () => {} }, signal).catch(
      () => {},
    )
  }

  #endTerm(): void {
    this.#term?.abort()
    this.#leader?.end()
    this.#term = undefined
    this.#leader = undefined
  }

  async #list(): Promise<void> {
    const signal = this.#term?.signal
    const { changed, due } = await this.#names.discover(this.#limit, signal, (name) => this.#withdraw(name))
    signal?.throwIfAborted()
    if (changed) this.#election.post({ kind: 'listed' })
    this.#leader?.due(due)
  }

  #setState(state: MirrorState): void {
    this.#state.set(state)
    this.#election.post({ kind: 'state', state })
    this.#leader?.plan()
  }

  #onMessage(stream: string, message: MirrorMessage, isOwn: boolean): void {
    if (stream === '') this.#onBasinMessage(message)
    else if (message.kind === 'state') this.#onStreamState(stream, message.state, isOwn)
    else if (message.kind === 'pending') this.#onPending(stream)
    else if (message.kind === 'used') this.#onUsed(stream)
    else if (
      (message.kind === 'retry' || message.kind === 'replaced') &&
      !this.#election.permitted.has(stream)
    )
      this.#leader?.due([stream])
  }

  #onBasinMessage(message: MirrorMessage): void {
    if (message.kind === 'listed') void this.#repeat(() => this.#names.update(), this.#closing.signal)
    if (this.#leader === undefined) {
      if (message.kind === 'state') this.#state.set(message.state)
      return
    }
    if (message.kind === 'retry') this.#retry()
    if (message.kind !== 'hello') return
    this.#election.post({ kind: 'state', state: this.state })
    for (const { name, state } of this.streams) {
      if (state.kind !== 'waiting') this.#election.post({ kind: 'state', state }, name)
    }
  }

  #onStreamState(name: string, state: MirrorState, isOwn: boolean): void {
    // A tab that led before may still be heard.
    if (this.#leader !== undefined && !isOwn) return
    this.#names.list.setState(name, state)
    if (this.#leader === undefined) return
    this.#leader.plan()
    // The first stream that notices a change of the network tells the others.
    const { kind } = this.state
    const isChange = state.kind === 'offline' ? kind === 'live' : state.kind === 'live' && kind === 'offline'
    if (isChange) this.#discovery.check()
  }

  #onStopped(name: string, state: MirrorState): void {
    this.#election.post({ kind: 'state', state }, name)
    this.#onStreamState(name, state, true)
  }

  /** Requests a turn for a stream without a connection that has records to send. */
  #onPending(name: string): void {
    this.#names.foundOutbox(name)
    if (!this.#election.permitted.has(name)) this.#leader?.due([name])
    else this.#entryOf(name, true)
  }

  #retry(): void {
    this.#discovery.retry()
    if (this.#leader === undefined) return
    for (const name of this.#election.permitted) this.#entries.get(name)?.mirror.retry()
    const stopped = this.streams.filter(({ state }) => state.kind === 'stopped')
    this.#leader.due(stopped.map(({ name }) => name))
  }

  #use(name: string): void {
    this.#election.post({ kind: 'used' }, name)
    this.#onUsed(name)
  }

  #onUsed(name: string): void {
    if (syncedNameProblem(name, this.#names.prefix) !== undefined || !this.#uses.note(name)) return
    this.#names.add(name)
    this.#leader?.plan()
  }

  #idleStateOf(name: string): MirrorState {
    const state = this.#names.list.stateOf(name)
    return state.kind === 'stopped' ? state : { kind: 'waiting' }
  }

  #withdraw(name: string): Promise<void> {
    this.#election.withdraw(name)
    this.#names.list.setState(name, this.#idleStateOf(name))
    return this.#closeIdle(name)
  }

  /** Closes a stream that neither the app nor the sync needs in this tab. */
  async #closeIdle(name: string): Promise<void> {
    const entry = this.#entries.get(name)
    if (entry === undefined || entry.isOpen || this.#election.permitted.has(name)) return
    this.#entries.delete(name)
    await this.#end(entry)
  }

  #end(entry: BasinEntry): Promise<void> {
    const ended = entry.close()
    this.#ended = Promise.allSettled([this.#ended, ended])
    return ended
  }

  /** Returns the entry of a stream; `isForSync` leaves out the outbox if the device never had one. */
  #entryOf(name: string, isForSync: boolean): BasinEntry {
    const isCopy = isForSync && !this.#names.hasOutbox(name)
    const known = this.#entries.get(name)
    if (known !== undefined && (isCopy || known.outbox !== undefined)) return known
    if (!isCopy) this.#names.foundOutbox(name)
    if (known !== undefined) void this.#end(known)
    const { remote, local, from, recordsMax, bytesMax, afterRefusal, random, wakeUps } = this.#options
    const limits = { from, recordsMax, bytesMax, afterRefusal, random, wakeUps }
    const limited = new LimitedStream(remote.stream(name), this.#limit, () => this.#createMissing(name))
    const options = { ...limits, coordinator: this.#election.coordinatorOf(name) }
    const entry = new BasinEntry(limited, local.stream(name), isCopy, options, {
      onPending: (isNews) => {
        if (isNews) this.#use(name)
        if (this.#leader === undefined) {
          if (!entry.isFlushed) this.#election.post({ kind: 'pending' }, name)
        } else if (entry.isFlushed) this.#leader.plan()
        else this.#onPending(name)
      },
      onState: (state) => {
        // A mirror without a copy takes part in no election, so other tabs do not learn its state.
        if (state.kind === 'stopped' && this.#election.permitted.has(name)) this.#onStopped(name, state)
      },
      onReleased: () => this.#closeIdle(name),
    })
    this.#entries.set(name, entry)
    return entry
  }

  /** Creates a stream on the server that was used on this device first. */
  async #createMissing(name: string): Promise<boolean> {
    const { remote, createStreams = true } = this.#options
    const entry = this.#entries.get(name)
    const isUsed = this.#uses.has(name) || entry?.isFlushed === false
    if (!createStreams || !isUsed) return false
    try {
      await remote.createStream(name)
    } catch (error) {
      if (codeOf(error) !== 'resource_already_exists') throw error
    }
    return true
  }
}

/**
 * Syncs all streams of a basin below a prefix: those that this device knows, and those that other devices
 * create. The most recently used ones follow the server, within a number of connections; the others are
 * caught up with, and what waits in them is sent, in turn. Resolves when the streams that this device knows
 * are listed; connects in the background: see `state`.
 *
 * Errors:
 * - `invalid` for options that are not valid
 * - `storage`, `storage_full` when the local storage fails
 *
 * ```ts
 * const server = await connect({ url: 'https://streams.example' })
 * const hw = await open({ storage: indexedDb('my-app') })
 * const [remote, local] = [server.basin('my-app'), hw.basin('my-app')]
 * const rooms = await syncedBasin({ remote, local, prefix: 'rooms/' })
 * rooms.streams$.subscribe((streams) => console.log(streams.map(({ name }) => name)))
 * await rooms.stream('rooms/general').append('hello')
 * ```
 */
export async function syncedBasin(options: SyncedBasinOptions): Promise<SyncedBasin> {
  assertSyncedBasinOptions(options)
  const { local, prefix = '', signal } = options
  // An empty stream, whose identity names the election of the tabs.
  const name = `.basin/${prefix}`
  const stream = local.stream(name).sibling(name, { autoCreate: true })
  await stream.readBatch({ count: 1 }, { create: true, signal })
  const { clock, closing: engineClosing } = stream.context
  const closing = new AbortController()
  const names = new BasinNames(options)
  await names.update()
  const election = `headwater basin ${await stream.identity({ signal })}`
  const opened = new SyncedBasin({ options, clock, election, closing, names })
  const ignore = onAnyAbort([signal, engineClosing], () => void opened.close())
  closing.signal.addEventListener('abort', ignore, { once: true })
  return opened
}
