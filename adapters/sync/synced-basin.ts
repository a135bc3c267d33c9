import type { Observable } from 'rxjs'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { compareUtf8 } from '../../src/model/bytes.ts'
import { assertValid, HeadwaterError } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers } from '../../src/model/validation.ts'
import { onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { MirrorState } from '../../src/sync/mirror.ts'
import { decodeMessage, encodeMessage } from '../../src/sync/mirror.ts'
import { OUTBOX_PREFIX, syncedNameProblem } from '../../src/sync/synced-names.ts'
import { BasinEntry } from './basin-entry.ts'
import { BasinLeader } from './basin-leader.ts'
import { coordinate, type Membership } from './coordinator.ts'
import { Discovery } from './discovery.ts'
import { browserWakeUps } from './page-events.ts'
import { StateCell } from './state-cell.ts'
import {
  assertSyncedBasinOptions,
  BASIN_STREAM_OPTIONS,
  type BasinStreamOptions,
  type SyncedBasinOptions,
} from './synced-basin-options.ts'
import type { SyncedStream } from './synced-stream.ts'

/** A stream of a synced basin. */
export interface BasinStream {
  /** The name of the stream. */
  readonly name: string
  /** The state of its mirror if this tab has opened the stream, else `waiting`: see `MirrorState`. */
  readonly state: MirrorState
}

/** The messages between the tabs of a synced basin, besides those with a state of the basin. */
type BasinMessage =
  /** Asks the elected tab for the names and the state. */
  | { readonly kind: 'hello' }
  /** Asks all tabs which streams they have open; again and again, because a killed tab does not say so. */
  | { readonly kind: 'elected' }
  /** A tab has the stream open, and `isUse` if the app has used it. */
  | { readonly kind: 'open'; readonly name: string; readonly isUse: boolean }
  | { readonly kind: 'closed'; readonly name: string }
  /** The streams that the elected tab knows. */
  | { readonly kind: 'names'; readonly names: readonly string[] }
  | { readonly kind: 'retry' }

/** How often the elected tab asks which streams the others have open, in milliseconds. */
const ROLL_CALL_MS = 15_000

/** The parts of a synced basin. */
interface BasinParts {
  readonly options: SyncedBasinOptions
  readonly clock: Clock
  /** The name of the election of the tabs. */
  readonly election: string
  readonly closing: AbortController
  /** The streams that this device has opened before. */
  readonly stored: Set<string>
}

/**
 * The streams of a server below a prefix, those that the app opens kept in sync with streams on this device.
 * Returned by {@link syncedBasin}. The tabs of an app share the connections: one of them syncs for all.
 */
export class SyncedBasin {
  readonly #options: SyncedBasinOptions
  readonly #clock: Clock
  readonly #closing: AbortController
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #streams: StateCell<readonly BasinStream[]>
  readonly #entries = new Map<string, BasinEntry>()
  /** The streams that this device has opened at some time. */
  readonly #stored: Set<string>
  /** The streams that any tab has open, the one that was used last at the end. */
  #open = new Set<string>()
  /** Those of them that are not open here, and that no tab has named since the last roll call. */
  #unnamed = new Set<string>()
  /** The streams of the server, and those of this device with records. */
  #listed: ReadonlySet<string>
  readonly #membership: Membership
  readonly #ignoreWakeUps: () => void
  #term: { readonly leader: BasinLeader; readonly discovery: Discovery; end(): void } | undefined
  /** Resolves once every stream has ended whose end has begun. */
  #ended: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | undefined

  /** @internal */
  constructor({ options, clock, election, closing, stored }: BasinParts) {
    this.#options = options
    this.#clock = clock
    this.#closing = closing
    this.#stored = stored
    this.#listed = new Set(stored)
    this.#streams = new StateCell(this.#list())
    this.#membership = (options.coordinator ?? coordinate)(election, {
      onElected: (isElected) => this.#onElected(isElected),
      onMessage: (message) => this.#onMessage(message),
    })
    // Those of a tab that was frozen may be forgotten.
    const onWakeUp = () => {
      for (const name of this.#openHere()) this.#announce(name, true)
    }
    this.#ignoreWakeUps = (options.wakeUps ?? browserWakeUps)(onWakeUp)
    this.#post({ kind: 'hello' })
  }

  /**
   * The state of the basin: `connecting`, `live` while the streams of the server can be listed, `offline`,
   * `stopped` if the token does not permit that, or `closed`. Each stream has a state of its own.
   */
  get state(): MirrorState {
    return this.#state.current
  }

  /** Emits the current state, then each change. Completes when the synced basin is closed. */
  get state$(): Observable<MirrorState> {
    return this.#state.states$
  }

  /**
   * All known streams in the order of their names: those of the server, and those that this device has opened
   * and that have records.
   */
  get streams(): readonly BasinStream[] {
    return this.#streams.current
  }

  /** Emits the streams, and again when one is added or removed, or changes its state. */
  get streams$(): Observable<readonly BasinStream[]> {
    return this.#streams.states$
  }

  /**
   * Opens a stream below the prefix by its full name, whether it exists or not. It can be read and appended
   * to at once. It is synced until the handle is closed: the streams that were used last are connected, and
   * opening counts as a use. Returns the same handle as long as it is open.
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
    assertValid(syncedNameProblem(name, this.#prefix), 'name')
    this.#closing.signal.throwIfAborted()
    const { as = 'string', isBackground = false } = options
    const handle = this.#entryOf(name).handle(as)
    this.#announce(name, !isBackground)
    return handle as SyncedStream<RecordFormat> as SyncedStream<Format>
  }

  /** Connects at once, and continues streams that have stopped. */
  retry(): void {
    this.#post({ kind: 'retry' })
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

  get #prefix(): string {
    return this.#options.prefix ?? ''
  }

  async #close(): Promise<void> {
    this.#closing.abort(new HeadwaterError('closed', 'the synced basin is closed'))
    for (const [name, { isOpen }] of this.#entries) if (isOpen) this.#post({ kind: 'closed', name })
    this.#endTerm()
    this.#ignoreWakeUps()
    this.#membership.leave()
    for (const entry of this.#entries.values()) void this.#end(entry)
    this.#entries.clear()
    await this.#ended
    this.#streams.end(this.streams)
    this.#state.end({ kind: 'closed' })
  }

  #onElected(isElected: boolean): void {
    this.#endTerm()
    if (isElected) this.#lead()
    else {
      this.#state.set({ kind: 'connecting' })
      this.#post({ kind: 'hello' })
    }
  }

  #lead(): void {
    const { connectionsMax = 3, catchUpMs = Number.POSITIVE_INFINITY, discoverMs = 30_000 } = this.#options
    const { remote, random = Math.random, wakeUps = browserWakeUps } = this.#options
    const clock = this.#clock
    const ending = new AbortController()
    const leader = new BasinLeader({
      clock,
      connectionsMax,
      catchUpMs,
      open: () => [...this.#open].reverse(),
      isStopped: (name) => this.#entries.get(name)?.state.kind === 'stopped',
      isDone: (name) => this.#entries.get(name)?.isDone === true,
      onPermitted: (name, isPermitted) => {
        this.#entryOf(name).permit(isPermitted)
        if (!isPermitted) void this.#closeIdle(name)
      },
    })
    const discovery = new Discovery({
      remote,
      prefix: this.#prefix,
      everyMs: discoverMs,
      clock,
      random,
      wakeUps,
      onNames: (names) => this.#onNames(names, ending.signal),
      onState: (state) => {
        this.#state.set(state)
        this.#postState()
      },
    })
    let cancelRollCall = () => {}
    const callRoll = () => {
      this.#callRoll()
      cancelRollCall = clock.schedule(ROLL_CALL_MS, callRoll, { background: true })
    }
    const end = () => {
      cancelRollCall()
      ending.abort()
      leader.end()
    }
    this.#unnamed = new Set()
    this.#term = { leader, discovery, end }
    callRoll()
    void discovery.run(ending.signal)
    leader.due([...this.#stored, ...this.#open])
  }

  #endTerm(): void {
    const term = this.#term
    this.#term = undefined
    term?.end()
  }

  /** Takes over the streams of the server. Streams without records are listed only if the server has them. */
  async #onNames(names: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const listed = new Set(names)
    for (const name of this.#stored) {
      if (listed.has(name)) continue
      // What waits in it is sent first.
      const isKept = this.#term?.leader.isDue(name) || !(await isEmpty(this.#options.local, name))
      if (isKept) listed.add(name)
    }
    if (signal.aborted || isSame(listed, this.#listed)) return
    this.#listed = listed
    this.#changed()
    this.#postNames()
  }

  #post(message: BasinMessage): void {
    this.#membership.post(message)
  }

  #postNames(): void {
    this.#post({ kind: 'names', names: [...this.#listed, ...this.#open] })
  }

  #postState(): void {
    this.#membership.post(encodeMessage({ kind: 'state', state: this.state }))
  }

  /** Any script of the origin can send a message. */
  #onMessage(value: unknown): void {
    const { kind, name, isUse, names } = Object(value) as Record<string, unknown>
    const hasName = typeof name === 'string' && syncedNameProblem(name, this.#prefix) === undefined
    if (kind === 'hello' && this.#term !== undefined) {
      this.#postState()
      this.#postNames()
    } else if (kind === 'elected') this.#answerElected()
    else if (kind === 'open' && hasName) this.#onOpen(name, isUse === true)
    else if (kind === 'closed' && hasName) this.#onClosed(name)
    else if (kind === 'retry') this.#retry()
    else if (this.#term !== undefined) return
    else if (kind === 'names' && Array.isArray(names)) {
      this.#listed = new Set(names.filter((each) => typeof each === 'string'))
      this.#changed()
    } else if (kind === 'state') {
      const message = decodeMessage(value)
      if (message?.kind === 'state') this.#state.set(message.state)
    }
  }

  /** Takes the streams for closed that no tab has named since the last call. */
  #callRoll(): void {
    for (const name of this.#unnamed) this.#onClosed(name)
    const here = new Set(this.#openHere())
    this.#unnamed = new Set([...this.#open].filter((name) => !here.has(name)))
    this.#post({ kind: 'elected' })
  }

  /** In the order in which a tab that does not know them puts each before the others. */
  #answerElected(): void {
    for (const name of this.#openHere().reverse()) this.#post({ kind: 'open', name, isUse: false })
  }

  /** The streams that the app has open in this tab, the one that was used last at the end. */
  #openHere(): string[] {
    return [...this.#open].filter((name) => this.#entries.get(name)?.isOpen)
  }

  /** Tells all tabs that this one has the stream open, or has something to fetch or to send in it. */
  #announce(name: string, isUse: boolean): void {
    this.#post({ kind: 'open', name, isUse })
    this.#onOpen(name, isUse)
  }

  #onOpen(name: string, isUse: boolean): void {
    this.#unnamed.delete(name)
    const isNew = !this.#open.has(name)
    if (isUse) {
      this.#open.delete(name)
      this.#open.add(name)
    } else if (isNew) this.#open = new Set([name, ...this.#open])
    if (isNew) this.#changed()
    this.#term?.leader.due([name])
  }

  #onClosed(name: string): void {
    if (this.#entries.get(name)?.isOpen) this.#announce(name, true)
    else if (this.#open.delete(name)) this.#changed()
    this.#term?.leader.plan()
  }

  #retry(): void {
    for (const entry of this.#entries.values()) entry.retry()
    this.#term?.discovery.again(true)
  }

  /** Closes a stream that neither the app nor the sync needs in this tab. */
  async #closeIdle(name: string): Promise<void> {
    const entry = this.#entries.get(name)
    if (entry === undefined || entry.isOpen || this.#term?.leader.isPermitted(name)) return
    this.#entries.delete(name)
    this.#changed()
    await this.#end(entry)
  }

  #end(entry: BasinEntry): Promise<void> {
    const ended = entry.close()
    this.#ended = Promise.allSettled([this.#ended, ended])
    return ended
  }

  #entryOf(name: string): BasinEntry {
    const known = this.#entries.get(name)
    if (known !== undefined) return known
    const { remote, local, createStreams = true, coordinator = coordinate } = this.#options
    const { from, recordsMax, bytesMax, afterRefusal, random, wakeUps } = this.#options
    const create = () => createStreams && this.#open.has(name)
    const limits = { from, recordsMax, bytesMax, afterRefusal, random, wakeUps }
    const options = { ...limits, coordinator, create }
    const entry = new BasinEntry(remote.stream(name), local.stream(name), options, {
      onPending: (isNews) => {
        if (!entry.isFlushed || isNews) {
          if (entry.isOpen) this.#announce(name, isNews)
          else this.#term?.leader.due([name])
        } else this.#term?.leader.plan()
      },
      onState: () => {
        if (this.#entries.get(name) !== entry) return
        this.#changed()
        this.#term?.leader.plan()
        // The server can be reached again.
        const isNews = entry.state.kind === 'live' && this.state.kind === 'offline'
        if (isNews) this.#term?.discovery.again(false)
      },
      onAsked: () => {
        if (entry.isOpen) this.#announce(name, false)
      },
      onReleased: async () => {
        this.#post({ kind: 'closed', name })
        this.#onClosed(name)
        await this.#closeIdle(name)
      },
    })
    this.#entries.set(name, entry)
    this.#stored.add(name)
    this.#changed()
    return entry
  }

  #changed(): void {
    this.#streams.set(this.#list())
  }

  #list(): readonly BasinStream[] {
    const names = new Set([...this.#listed, ...this.#open, ...this.#entries.keys()])
    const sorted = [...names].sort(compareUtf8)
    return sorted.map((name) => ({ name, state: this.#entries.get(name)?.state ?? { kind: 'waiting' } }))
  }
}

function isSame(names: ReadonlySet<string>, others: ReadonlySet<string>): boolean {
  return names.size === others.size && [...names].every((name) => others.has(name))
}

async function isEmpty(local: SyncedBasinOptions['local'], name: string): Promise<boolean> {
  try {
    return (await local.stream(name).checkTail()).seqNum === 0
  } catch {
    return true
  }
}

/**
 * Syncs the streams of a basin below a prefix that the app opens, and finds those that other devices create.
 * The most recently used ones follow the server, within a number of connections; the others have turns, in
 * which they are caught up with, and what waits in them is sent. Resolves when the streams that this device
 * has opened before are listed; connects in the background: see `state`.
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
  const stored = new Set<string>()
  // Each stream that was opened has an outbox.
  for await (const outbox of local.listAllStreams({ prefix: OUTBOX_PREFIX + prefix }, { signal })) {
    stored.add(outbox.name.slice(OUTBOX_PREFIX.length))
  }
  const election = `headwater basin ${await stream.identity({ signal })}`
  const opened = new SyncedBasin({ options, clock, election, closing, stored })
  const ignore = onAnyAbort([signal, engineClosing], () => void opened.close())
  closing.signal.addEventListener('abort', ignore, { once: true })
  return opened
}
