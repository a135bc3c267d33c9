import { JsonCodec } from '../../src/api/json-codec.ts'
import type { Stream } from '../../src/api/stream.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import {
  isSnapshotDue,
  isSnapshotDueOnClose,
  isSuperseded,
  type SnapshotProgress,
} from '../../src/sync/fold-policy.ts'
import { type FoldSnapshot, isOfKind, type SnapshotKind } from '../../src/sync/fold-snapshot.ts'
import { type FoldState, foldStateAt } from '../../src/sync/fold-state.ts'
import type { FoldOptions } from './options.ts'
import { SnapshotStore } from './snapshot-store.ts'

const SNAPSHOT_EVERY = 1_000

/** Loads the last snapshot of a fold, and stores new ones between deliveries of records. */
export class FoldSnapshots<State> {
  readonly #stored: Stream | undefined
  readonly #store: SnapshotStore | undefined
  readonly #codec: FoldCodec<State>
  readonly #options: FoldOptions<State, never>
  readonly #every: number
  readonly #state: () => FoldState<State>
  readonly #stopping = new AbortController()
  /** The identity of the folded stream, once it is known. */
  #identity: string | undefined
  /** The position of the newest snapshot. */
  #saved = 0
  /** The position of the last attempt to store one. */
  #attempted = 0
  #isCaughtUp = false
  #isClosing = false
  /** Counts how often the stream turned out to be another one. */
  #resets = 0
  #saving: Promise<void> | undefined
  /** The reason why no snapshot could be loaded. */
  loadError: unknown

  /** Throws `invalid` if snapshots could not represent the initial value. */
  constructor(stored: Stream | undefined, options: FoldOptions<State, never>, state: () => FoldState<State>) {
    this.#stored = stored
    this.#options = options
    this.#every = options.snapshotEvery ?? SNAPSHOT_EVERY
    this.#state = state
    this.#codec = new FoldCodec(options)
    const stream = this.#every === Number.POSITIVE_INFINITY ? undefined : streamOf(stored, options)
    this.#store = stream && new SnapshotStore(stream)
    if (this.#store !== undefined) this.#codec.encode(options.initial)
  }

  /** Resolves to the state of the newest snapshot that can be used. */
  async load(signal: AbortSignal): Promise<FoldState<State> | undefined> {
    if (this.#store === undefined) return undefined
    try {
      const [snapshots, identity] = await Promise.all([this.#store.load(signal), this.#identify(signal)])
      this.#identity = identity
      const kind = this.#kind(identity)
      for (const snapshot of snapshots.filter((each) => isOfKind(each, kind))) {
        const state = await this.#decoded(snapshot)
        if (state !== undefined) return state
      }
    } catch (error) {
      signal.throwIfAborted()
      this.loadError = error
      this.#report(error)
    }
    return undefined
  }

  /** Decides whether a snapshot is due, and stores it in a later turn. */
  onChange(isCaughtUp: boolean): void {
    this.#isCaughtUp = isCaughtUp
    if (this.#saving !== undefined || !this.#isDue) return
    this.#saving = this.#saveWhileDue().finally(() => {
      this.#saving = undefined
    })
  }

  /** Forgets the snapshots, which are those of another stream. */
  reset(): void {
    this.#saved = 0
    this.#attempted = 0
    this.#identity = undefined
    this.#resets++
  }

  /** Stores nothing more. */
  stop(reason: unknown): void {
    this.#stopping.abort(reason)
  }

  /** Waits for the snapshot that is being stored. Stores one more if there are enough new records. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.#saving
    const isDue = isSnapshotDueOnClose(this.#progressSince(this.#saved))
    if (this.#store === undefined || this.#stopping.signal.aborted || !isDue) return
    await this.#save(this.#store)
  }

  get #isDue(): boolean {
    if (this.#store === undefined || this.#isClosing || this.#stopping.signal.aborted) return false
    return isSnapshotDue(this.#progressSince(this.#attempted), this.#isCaughtUp)
  }

  #progressSince(saved: number): SnapshotProgress {
    const { position, leaving } = this.#state()
    return { position, saved, every: this.#every, leaving: leaving.length }
  }

  async #saveWhileDue(): Promise<void> {
    // Records that have arrived are delivered first.
    for (await macrotask(); this.#isDue; await macrotask()) await this.#save(this.#store!)
  }

  /** Stores the current state. Reports a failure. */
  async #save(store: SnapshotStore): Promise<void> {
    const { signal } = this.#stopping
    const resets = this.#resets
    try {
      const identity = this.#identity ?? (await this.#identify(signal))
      if (resets !== this.#resets) return
      this.#identity = identity
      const kind = this.#kind(identity)
      const { confirmed, position, last, leaving } = this.#state()
      this.#attempted = position
      // Without waiting: a reducer that changes the state in place must not change it meanwhile.
      const snapshot = { ...kind, position, last: last ?? null, leaving, ...this.#codec.encode(confirmed) }
      const progress = this.#progressSince(this.#saved)
      const saved = await store.save(
        snapshot,
        (other) => isSuperseded(progress, other.position, isOfKind(other, kind)),
        signal,
      )
      if (resets !== this.#resets) return
      this.#saved = saved
      // One of another version stays, even if it is older: the next attempt is due `every` records later.
      if (position - saved < this.#every) this.#attempted = saved
    } catch (error) {
      if (resets === this.#resets) this.#attempted = this.#state().position
      if (!signal.aborted) this.#report(error)
    }
  }

  /** Resolves to undefined if the stream is missing, or if the caller may not know. */
  async #identify(signal: AbortSignal): Promise<string | undefined> {
    return this.#stored?.identity({ signal }).catch(() => undefined)
  }

  #kind(identity = ''): SnapshotKind {
    return { source: identity, version: this.#options.version }
  }

  async #decoded(snapshot: FoldSnapshot): Promise<FoldState<State> | undefined> {
    try {
      const state = await this.#codec.decode(snapshot)
      this.#saved = this.#attempted = snapshot.position
      return foldStateAt(state, snapshot.position, snapshot.last ?? undefined, snapshot.leaving)
    } catch (error) {
      this.#report(error)
      return undefined
    }
  }

  #report(error: unknown): void {
    try {
      this.#options.onSnapshotError?.(error)
    } catch {
      // Exceptions of the callback are ignored, as its docstring states.
    }
  }
}

/** The stream of the snapshots, if there is a place for them. */
function streamOf(
  stored: Stream | undefined,
  { name = 'default', snapshots }: Pick<FoldOptions<unknown, never>, 'name' | 'snapshots'>,
): Stream | undefined {
  if (snapshots !== undefined || stored === undefined) return snapshots
  // Not below the name of the folded stream, so that lists of an app's own prefix do not contain it.
  return stored.sibling(`.fold/${name}/${stored.name}`, {
    config: { retentionPolicy: 'infinite' },
    autoCreate: true,
  })
}

/** Converts the values of a fold to what a snapshot stores, and back. */
class FoldCodec<State> {
  readonly #options: Pick<FoldOptions<State, never>, 'encode' | 'decode'>
  readonly #writer = new JsonCodec<unknown>(undefined)
  readonly #reader: JsonCodec<unknown>

  /** Throws `invalid` for an object that is not a schema. */
  constructor(options: Pick<FoldOptions<State, never>, 'encode' | 'decode' | 'schema'>) {
    this.#options = options
    this.#reader = new JsonCodec<unknown>(options.schema)
  }

  /** Throws `invalid` for a value that JSON cannot represent or would silently change. */
  encode(state: State): Pick<FoldSnapshot, 'isJson' | 'state'> {
    const { encode } = this.#options
    const encoded = encode === undefined ? state : encode(state)
    if (encoded instanceof Uint8Array) return { isJson: false, state: encoded }
    // Synchronous without a schema.
    return { isJson: true, state: utf8(this.#writer.encode(encoded) as string) }
  }

  /** Rejects if the snapshot cannot be decoded, or does not match the schema. */
  async decode({ isJson, state, position }: FoldSnapshot): Promise<State> {
    const { decode } = this.#options
    const encoded = isJson ? await this.#parsed(state, position) : state
    return decode === undefined ? (encoded as State) : decode(encoded as never)
  }

  async #parsed(body: Uint8Array, seqNum: number): Promise<unknown> {
    const [record] = await this.#reader.decode([{ seqNum, timestamp: 0, headers: [], body }])
    return record!.value
  }
}
