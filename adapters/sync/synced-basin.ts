import type { Observable } from 'rxjs'
import type { Basin } from '../../src/api/basin.ts'
import { type CallOptions, signalOf } from '../../src/api/call-options.ts'
import { compareUtf8, utf8Length } from '../../src/model/bytes.ts'
import { assertValid, HeadwaterError, invalid } from '../../src/model/errors.ts'
import type { RecordFormat } from '../../src/model/record.ts'
import { assertMembers, assertText, hasMethod, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { onAbort, onAnyAbort, unlessAborted } from '../../src/runtime/abort.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import { idFrom, secureRandom } from '../../src/runtime/random.ts'
import {
  connectedStreams,
  isInternalName,
  type OpenStream,
  OUTBOX_PREFIX,
  openInTabs,
  SYNCED_NAME_BYTES_MAX,
  syncedNameProblem,
} from '../../src/sync/basin.ts'
import { asHeadwaterError, mirrorOutcome } from '../../src/sync/failures.ts'
import { assertStart, type MirrorState } from '../../src/sync/mirror.ts'
import { BackOff, browserWakeUps, pauseUntil, StateCell } from './activity.ts'
import { BasinEntry } from './basin-entry.ts'
import { coordinate, type Membership } from './coordinator.ts'
import { assertLeast, assertOutboxOptions, OUTBOX_OPTIONS } from './outbox.ts'
import { type SyncedStream, type SyncedStreamOptions, syncedParts } from './synced-stream.ts'

/** Options of `syncedBasin`. The members that it shares with `syncedStream` apply to each stream. */
export interface SyncedBasinOptions extends Omit<SyncedStreamOptions, 'as'> {
  /** The basin of a client. */
  readonly remote: Basin
  /** The basin of an engine on this device. */
  readonly local: Basin
  /** The prefix of the names of streams to sync. By default `''`, which is all streams. */
  readonly prefix?: string | undefined
  /**
   * How many streams are connected at once, at least 1. 3 by default, so that 3 of the 6 connections of a
   * browser remain for appends, lists and the app. Higher values help with HTTP/2.
   */
  readonly connectionsMax?: number | undefined
  /**
   * How often the streams of the server are listed, and open streams without a connection are visited, in
   * milliseconds, at least 1,000. 30,000 by default.
   */
  readonly discoverMs?: number | undefined
  /** Whether streams that the app opens are created on the server. True by default. */
  readonly createStreams?: boolean | undefined
}

/** Options of `stream` of a synced basin. */
export interface BasinStreamOptions<Format extends RecordFormat = RecordFormat> {
  /** The type of bodies and headers: `'string'` by default, or `'bytes'`. */
  readonly as?: Format | undefined
  /**
   * Whether opening the stream does not count as a use of it, as for a list of all streams. An append still
   * does. False by default.
   */
  readonly isBackground?: boolean | undefined
}

const assertBasin = hasMethod('listStreams', 'a basin')
const SYNCED_BASIN_OPTIONS: MembersOf<SyncedBasinOptions> = {
  ...OUTBOX_OPTIONS,
  remote: assertBasin,
  local: assertBasin,
  prefix: assertText,
  connectionsMax: 'number',
  discoverMs: 'number',
  createStreams: 'boolean',
  from: assertStart,
}

const BASIN_STREAM_OPTIONS: MembersOf<BasinStreamOptions> = {
  as: oneOf(['string', 'bytes']),
  isBackground: 'boolean',
}

/** Throws `invalid` for options that are not valid. */
function assertSyncedBasinOptions(options: SyncedBasinOptions): void {
  assertOutboxOptions(options, SYNCED_BASIN_OPTIONS)
  assertBasin(options.remote, 'remote')
  assertBasin(options.local, 'local')
  assertLeast('connectionsMax', options.connectionsMax, 1)
  assertLeast('discoverMs', options.discoverMs, 1_000)
  const { prefix = '' } = options
  if (isInternalName(prefix)) throw invalid('`prefix` is that of streams that sync uses itself', 'prefix')
  if (utf8Length(prefix) > SYNCED_NAME_BYTES_MAX) {
    throw invalid(`\`prefix\` must not exceed ${SYNCED_NAME_BYTES_MAX} bytes in length`, 'prefix')
  }
}

/** The number of connections that leaves 3 of the 6 of a browser for appends, lists and the app. */
const CONNECTIONS_MAX = 3
/** The most streams of a server that are listed. */
const STREAMS_MAX = 10_000
/** How often the streams of the server are listed, and those without a connection are visited. */
const DISCOVER_MS = 30_000

/** A stream of a synced basin. */
export interface BasinStream {
  /** The name of the stream. */
  readonly name: string
  /** The state of its mirror if this tab has opened the stream, else `waiting`: see `MirrorState`. */
  readonly state: MirrorState
}

/** The messages between the tabs of a synced basin. */
type BasinMessage =
  /** What a tab has open: nothing, if it is closed. Other tabs answer if it is new. */
  | {
      readonly kind: 'tab'
      readonly tab: string
      readonly streams: readonly OpenStream[]
      readonly isNew: boolean
    }
  | { readonly kind: 'retry' }

/** How often a tab says what it has open, in milliseconds. */
const REPORT_MS = 30_000
/** When a tab is forgotten that says nothing: browsers run timers of hidden pages once a minute. */
const FORGET_MS = 100_000

/** The parts of a synced basin. */
interface BasinParts {
  readonly options: SyncedBasinOptions
  readonly clock: Clock
  /** The name of the channel of the tabs. */
  readonly channel: string
  readonly closing: AbortController
  /** The streams that this device has opened before. */
  readonly stored: Set<string>
}

/**
 * The streams of a server below a prefix, those that the app opens kept in sync with streams on this device.
 * Returned by {@link syncedBasin}.
 *
 * Each tab tells the others which streams it has open, from which all of them derive which ones may connect.
 * A mirror connects in one of the tabs that have its stream open.
 */
export class SyncedBasin {
  readonly #options: SyncedBasinOptions
  readonly #clock: Clock
  readonly #closing: AbortController
  readonly #state = new StateCell<MirrorState>({ kind: 'connecting' })
  readonly #streams = new StateCell<readonly BasinStream[]>([])
  readonly #entries = new Map<string, BasinEntry>()
  /** The streams that this device has opened at some time. */
  readonly #stored: Set<string>
  /** The streams of the server. */
  #listed: readonly string[] = []
  /** What other tabs have open, and when they said so. */
  readonly #others = new Map<string, { readonly streams: readonly OpenStream[]; readonly at: number }>()
  readonly #tab = idFrom(secureRandom)
  readonly #membership: Membership
  #lastUse = 0
  /** What this tab has said last. */
  #reported = ''
  /** What the last list of streams was made of. */
  #shown: readonly unknown[] = []
  #isPlanned = false
  /** The pauses between lists. */
  readonly #listing: BackOff
  /** The streams that may connect, in any tab. */
  #connected: ReadonlySet<string> = new Set()
  /** Ends the wait until another stream is due. */
  #cancelPlan = () => {}
  /** Resolves once every stream has ended whose end has begun. */
  #ended: Promise<unknown> = Promise.resolve()
  #closed: Promise<void> | undefined

  /** @internal */
  constructor({ options, clock, channel, closing, stored }: BasinParts) {
    this.#options = options
    this.#clock = clock
    this.#closing = closing
    this.#stored = stored
    this.#show()
    this.#membership = (options.coordinator ?? coordinate)(channel, {
      onMessage: (message) => this.#onMessage(message as BasinMessage),
    })
    const { random = Math.random, wakeUps = browserWakeUps } = options
    this.#listing = new BackOff(clock, random)
    const onWakeUp = () => {
      this.#listing.wake(false)
      this.#report(true)
    }
    // The others may have forgotten a tab that was frozen.
    onAbort(closing.signal, wakeUps(onWakeUp))
    void this.#listAgain()
    void this.#reportAgain()
    void this.#sendLeft()
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
   * All known streams in the order of their names: those of the server, and those that this device has
   * opened.
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
   * to at once. It is synced until the handle is closed and everything is sent: the streams that were used
   * last are connected, and opening counts as a use. Returns the same handle as long as it is open.
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
    assertValid(syncedNameProblem(name, this.#options.prefix ?? ''), 'name')
    this.#closing.signal.throwIfAborted()
    const { as = 'string', isBackground = false } = options
    const entry = this.#entryOf(name)
    const handle = entry.handle(as)
    if (isBackground) this.#plan()
    else entry.use()
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

  async #close(): Promise<void> {
    this.#closing.abort(new HeadwaterError('closed', 'the synced basin is closed'))
    this.#cancelPlan()
    this.#post({ kind: 'tab', tab: this.#tab, streams: [], isNew: false })
    this.#membership.leave()
    for (const entry of this.#entries.values()) void this.#end(entry)
    await this.#ended
    this.#streams.end(this.streams)
    this.#state.end({ kind: 'closed' })
  }

  /** Opens the streams that have records to send from an earlier run, until these are sent. */
  async #sendLeft(): Promise<void> {
    for (const name of [...this.#stored]) {
      if (this.#closing.signal.aborted) return
      await this.#entryOf(name).loaded
    }
  }

  /** Lists the streams of the server again and again. */
  async #listAgain(): Promise<void> {
    const { signal } = this.#closing
    const { discoverMs = DISCOVER_MS } = this.#options
    while (!signal.aborted) {
      try {
        const names = await this.#namesOnServer()
        if (names.join('\0') !== this.#listed.join('\0')) {
          this.#listed = names
          this.#show()
        }
        if (this.state.kind !== 'live') this.#state.set({ kind: 'live' })
        this.#listing.reset()
        await this.#listing.wait(discoverMs, signal, false)
      } catch (thrown) {
        if (!signal.aborted) await this.#pauseAfter(asHeadwaterError(thrown))
      }
    }
  }

  /** Shows why the streams of the server cannot be listed, and waits until the next attempt. */
  async #pauseAfter(error: HeadwaterError): Promise<void> {
    const { signal } = this.#closing
    const reason = mirrorOutcome(error, false)
    if (reason === 'retry')
      return this.#listing.afterFailure(error, signal, (state) => this.#state.set(state))
    this.#state.set({ kind: 'stopped', reason, error })
    await this.#listing.wait(undefined, signal, false)
  }

  async #namesOnServer(): Promise<readonly string[]> {
    const { remote, prefix = '' } = this.#options
    const { signal } = this.#closing
    const names: string[] = []
    let count = 0
    for await (const { name, deletedAt } of remote.listAllStreams({ prefix }, { signal })) {
      if (deletedAt === null && syncedNameProblem(name, prefix) === undefined) names.push(name)
      if (++count === STREAMS_MAX) break
    }
    return names
  }

  #post(message: BasinMessage): void {
    this.#membership.post(message)
  }

  #onMessage(message: BasinMessage): void {
    if (message.kind === 'retry') this.#retry()
    else {
      const { tab, streams, isNew } = message
      this.#others.set(tab, { streams, at: this.#clock.now() })
      if (isNew) this.#report(false)
    }
    this.#plan()
  }

  /** Tells the other tabs what this one has open. */
  #report(isNew: boolean): void {
    const streams = this.#openHere()
    this.#reported = JSON.stringify(streams)
    this.#post({ kind: 'tab', tab: this.#tab, streams, isNew })
  }

  /** Reports now, and again and again, because a tab that is killed cannot say so. */
  async #reportAgain(): Promise<void> {
    const { signal } = this.#closing
    for (let isNew = true; !signal.aborted; isNew = false) {
      this.#report(isNew)
      this.#plan()
      await pauseUntil(this.#clock, REPORT_MS, signal)
    }
  }

  /** The streams that this tab has open, except those that wait for the app. */
  #openHere(): readonly OpenStream[] {
    const entries = [...this.#entries.values()].filter(({ state }) => state.kind !== 'stopped')
    return entries.map(({ open }) => open)
  }

  /** The open streams of all tabs, the one that was used last first. */
  #open(): readonly OpenStream[] {
    const now = this.#clock.now()
    for (const [tab, { at }] of this.#others) if (Math.abs(now - at) > FORGET_MS) this.#others.delete(tab)
    const others = Array.from(this.#others.values(), ({ streams }) => streams)
    return openInTabs([this.#openHere(), ...others])
  }

  /** Decides in a later microtask which streams connect. */
  #plan(): void {
    if (this.#isPlanned) return
    this.#isPlanned = true
    queueMicrotask(() => {
      this.#isPlanned = false
      if (!this.#closing.signal.aborted) this.#decide()
    })
  }

  #decide(): void {
    const { connectionsMax = CONNECTIONS_MAX, discoverMs = DISCOVER_MS } = this.#options
    const { connected, dueInMs } = connectedStreams(
      this.#open(),
      this.#connected,
      this.#clock.now(),
      connectionsMax,
      discoverMs,
    )
    this.#connected = connected
    // A stopped one has no connection, and keeps its state for the app to see.
    const mayConnect = ({ name, state }: BasinEntry) => connected.has(name) || state.kind === 'stopped'
    // Some give up their connections before others get them.
    const entries = [...this.#entries.values()].sort((a, b) => Number(mayConnect(a)) - Number(mayConnect(b)))
    for (const entry of entries) entry.permit(mayConnect(entry))
    if (JSON.stringify(this.#openHere()) !== this.#reported) this.#report(false)
    this.#cancelPlan()
    const isLater = dueInMs < Number.POSITIVE_INFINITY
    if (isLater) this.#cancelPlan = this.#clock.schedule(dueInMs, () => this.#plan(), { background: true })
    this.#show()
  }

  /** Shows the streams, unless nothing has changed but what waits in them. */
  #show(): void {
    const open = this.#open().map(({ name }) => name)
    const states = [...this.#entries.values()].flatMap(({ name, state }) => [name, state])
    const shown = [this.#listed, ...this.#stored, ...open, ...states]
    if (shown.length === this.#shown.length && shown.every((item, i) => item === this.#shown[i])) return
    this.#shown = shown
    const names = [...new Set([...this.#listed, ...this.#stored, ...open])].sort(compareUtf8)
    const stateOf = (name: string): MirrorState => this.#entries.get(name)?.state ?? { kind: 'waiting' }
    this.#streams.set(names.map((name) => ({ name, state: stateOf(name) })))
  }

  #retry(): void {
    for (const entry of this.#entries.values()) entry.retry()
    this.#listing.wake(true)
    this.#plan()
  }

  #end(entry: BasinEntry): Promise<void> {
    this.#entries.delete(entry.name)
    const ended = entry.close()
    this.#ended = Promise.allSettled([this.#ended, ended])
    return ended
  }

  #entryOf(name: string): BasinEntry {
    const known = this.#entries.get(name)
    if (known !== undefined) return known
    const { signal: _, remote, local, createStreams: create = true, ...shared } = this.#options
    const options = { ...shared, create, mayConnect: false }
    const parts = syncedParts(remote.stream(name), local.stream(name), options)
    const now = () => {
      this.#lastUse = Math.max(this.#lastUse + 1, this.#clock.now())
      return this.#lastUse
    }
    const created = new BasinEntry(name, parts, now, async (entry) => {
      this.#plan()
      if (this.#entries.get(name) === entry && !entry.isNeeded) await this.#end(entry)
    })
    this.#entries.set(name, created)
    this.#stored.add(name)
    this.#show()
    return created
  }
}

/**
 * Syncs the streams of a basin below a prefix that the app opens, and finds those that other devices create.
 * The most recently used ones are connected; the others are visited one after another, to fetch and to send
 * what is new. Resolves when the streams that this device has opened before are listed; connects in the
 * background: see `state`.
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
  // An empty stream, whose identity names the channel of the tabs.
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
  const channel = `headwater basin ${await stream.identity({ signal })}`
  const opened = new SyncedBasin({ options, clock, channel, closing, stored })
  const ignore = onAnyAbort([signal, engineClosing], () => void opened.close())
  onAbort(closing.signal, ignore)
  return opened
}
