import { JsonCodec } from '../../src/api/json-codec.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { RecordInput } from '../../src/model/append-input.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { isStreamMissing } from '../../src/model/errors.ts'
import { trimRecord } from '../../src/model/record.ts'
import { macrotask } from '../../src/runtime/macrotask.ts'
import { codeOf } from '../../src/sync/failures.ts'
import {
  EMPTY_SCAN,
  type FoldSnapshot,
  type FoldState,
  foldStateAt,
  isSnapshotDue,
  isSuperseded,
  recordsOfSnapshot,
  scanSnapshots,
  snapshotPartOf,
} from '../../src/sync/fold.ts'
import type { FoldOptions } from './options.ts'

const SNAPSHOT_EVERY = 1_000
/** The attempts at a snapshot while other folds store theirs at the same time. */
const ATTEMPTS_MAX = 3

/**
 * Loads the last snapshot of a fold, and stores new ones between deliveries of records.
 *
 * The snapshots are in a stream of their own. Each append is conditional on the tail, so of several tabs that
 * store snapshots at once, one completes its own. The last part comes in one batch with a trim of everything
 * before the snapshot, so that a complete snapshot is in the stream at any time.
 */
export class FoldSnapshots<State> {
  readonly #folded: Stream | undefined
  readonly #stream: Stream | undefined
  readonly #options: FoldOptions<State, never>
  readonly #every: number
  readonly #state: () => FoldState<State>
  readonly #stopping = new AbortController()
  readonly #codec = new JsonCodec<unknown>(undefined)
  /** The identity of the folded stream, once it is known. */
  #identity: string | undefined
  /** The tail of the snapshots if nothing was stored since they were loaded, as far as this fold knows. */
  #tail: number | undefined
  /** The position of the newest snapshot, or of the last attempt to store one. */
  #saved = 0
  /** Whether this fold has loaded or stored a snapshot. */
  #isStored = false
  #phase: Parameters<typeof isSnapshotDue>[1] = 'catching-up'
  #saving: Promise<void> | undefined
  /** The reason why no snapshot could be loaded. */
  loadError: unknown

  /** Throws `invalid` if snapshots could not represent the initial value. */
  constructor(folded: Stream | undefined, options: FoldOptions<State, never>, state: () => FoldState<State>) {
    this.#folded = folded
    this.#options = options
    this.#every = options.snapshotEvery ?? SNAPSHOT_EVERY
    this.#state = state
    if (this.#every === Number.POSITIVE_INFINITY) return
    this.#stream = options.snapshots ?? (folded && siblingOf(folded, options.name))
    if (this.#stream !== undefined) this.#encode(options.initial)
  }

  /** Resolves to the state of the newest snapshot that can be used. */
  async load(signal: AbortSignal): Promise<FoldState<State> | undefined> {
    if (this.#stream === undefined) return undefined
    try {
      this.#identity = await this.#identify()
      const snapshot = await this.#newest(this.#stream, signal)
      if (snapshot !== undefined) return await this.#decoded(snapshot)
    } catch (error) {
      signal.throwIfAborted()
      this.loadError = error
      this.#report(error)
    }
    return undefined
  }

  /** Decides whether a snapshot is due, and stores it in a later turn. */
  onChange(isCaughtUp: boolean): void {
    if (this.#phase !== 'closing') this.#phase = isCaughtUp ? 'following' : 'catching-up'
    if (this.#saving !== undefined || !this.#isDue) return
    this.#saving = this.#saveWhileDue().finally(() => {
      this.#saving = undefined
    })
  }

  /** Stores nothing more. */
  stop(reason: unknown): void {
    this.#stopping.abort(reason)
  }

  /** Waits for the snapshot that is being stored. Stores one more if there are enough new records. */
  async close(): Promise<void> {
    this.#phase = 'closing'
    await this.#saving
    if (this.#isDue) await this.#save(this.#stream!)
  }

  get #isDue(): boolean {
    if (this.#stream === undefined || this.#stopping.signal.aborted) return false
    const { position } = this.#state()
    return isSnapshotDue({ position, saved: this.#saved, every: this.#every }, this.#phase)
  }

  async #saveWhileDue(): Promise<void> {
    // Records that have arrived are delivered first.
    for (await macrotask(); this.#isDue && this.#phase !== 'closing'; await macrotask()) {
      await this.#save(this.#stream!)
    }
  }

  /** Stores the current state. Reports a failure: the next attempt is due `every` records later. */
  async #save(stream: Stream): Promise<void> {
    const { signal } = this.#stopping
    let { position: saved } = this.#state()
    try {
      this.#identity ??= await this.#identify()
      const { confirmed, position, last = null } = this.#state()
      saved = position
      // Without waiting: a reducer that changes the state in place must not change it meanwhile.
      const snapshot = { ...this.#kind, position, last, ...this.#encode(confirmed) }
      const newest = await this.#store(stream, snapshot, signal)
      this.#isStored ||= newest > 0
      // One of another version stays, even if it is older.
      if (position - newest < this.#every) saved = newest
    } catch (error) {
      if (!signal.aborted) this.#report(error)
    }
    this.#saved = saved
  }

  /** Stores a snapshot unless another one is new enough. Resolves to the position of the newest snapshot. */
  async #store(stream: Stream, snapshot: FoldSnapshot, signal: AbortSignal): Promise<number> {
    const records = recordsOfSnapshot(snapshot)
    let tail = this.#tail
    // Others may store theirs before the next one.
    this.#tail = undefined
    for (let attempt = 1; ; attempt++) {
      if (tail === undefined) {
        const { part, ...newest } = await newestPart(stream, signal)
        tail = newest.tail
        // An incomplete snapshot was left by a crash, unless another fold is about to complete it.
        const isUsable = part !== undefined && (attempt > 1 || part.index === part.count - 1)
        if (isUsable && isSuperseded(snapshot, part, this.#every, this.#isStored)) return part.position
      }
      try {
        this.#tail = await appendSnapshot(stream, records, tail, signal)
        return snapshot.position
      } catch (error) {
        if (codeOf(error) !== 'seq_num_mismatch' || attempt === ATTEMPTS_MAX) throw error
        tail = undefined
      }
    }
  }

  /** The identity of the fold, which tells its snapshots from others. */
  get #kind() {
    return { source: this.#identity ?? '', version: this.#options.version }
  }

  /** Resolves to the newest complete snapshot of this fold. */
  async #newest(stream: Stream, signal: AbortSignal): Promise<FoldSnapshot | undefined> {
    let scan = EMPTY_SCAN
    try {
      const read = stream.read({}, { as: 'bytes', signal })
      for await (const { records } of read.batches()) scan = scanSnapshots(scan, records, this.#kind)
      // An empty stream may have a tail.
      this.#tail = scan.end === 0 ? undefined : scan.end
    } catch (error) {
      if (!isStreamMissing(error)) throw error
      this.#tail = 0
    }
    return scan.newest
  }

  /** Resolves to undefined if the stream is missing, or if the caller may not know. */
  async #identify(): Promise<string | undefined> {
    return this.#folded?.identity({ signal: this.#stopping.signal }).catch(() => undefined)
  }

  /** Throws `invalid` for a value that JSON cannot represent or would silently change. */
  #encode(state: State): Pick<FoldSnapshot, 'isJson' | 'state'> {
    const { encode } = this.#options
    const encoded = encode === undefined ? state : encode(state)
    if (encoded instanceof Uint8Array) return { isJson: false, state: encoded }
    // Synchronous without a schema.
    return { isJson: true, state: utf8(this.#codec.encode(encoded) as string) }
  }

  /** Resolves to undefined if the snapshot cannot be decoded. */
  async #decoded({
    isJson,
    state: body,
    position,
    last,
  }: FoldSnapshot): Promise<FoldState<State> | undefined> {
    const { decode } = this.#options
    try {
      let encoded: unknown = body
      if (isJson) {
        const [record] = await this.#codec.decode([{ seqNum: position, timestamp: 0, headers: [], body }])
        encoded = record!.value
      }
      const state = decode === undefined ? (encoded as State) : decode(encoded as never)
      this.#saved = position
      this.#isStored = position > 0
      return foldStateAt(state, position, last ?? undefined)
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

/** Returns the stream of the snapshots beside the folded one. */
function siblingOf(folded: Stream, name = 'default'): Stream {
  // Not below the name of the folded stream, so that lists of an app's own prefix do not contain it.
  return folded.sibling(`.fold/${name}/${folded.name}`, {
    config: { retentionPolicy: 'infinite' },
    autoCreate: true,
  })
}

/** Appends the parts of a snapshot, the last one with a trim of what was before. Resolves to the tail. */
async function appendSnapshot(
  stream: Stream,
  records: readonly RecordInput[],
  start: number,
  signal: AbortSignal,
): Promise<number> {
  let tail = start
  for (const [index, record] of records.entries()) {
    const isLast = index === records.length - 1
    const batch = isLast && start > 0 ? [record, trimRecord(start)] : [record]
    const ack = await stream.append(batch, { matchSeqNum: tail, signal })
    tail = ack.end.seqNum
  }
  return tail
}

/** Resolves to the tail, and to the part of a snapshot that was stored last. */
async function newestPart(stream: Stream, signal: AbortSignal) {
  try {
    // The last part of a snapshot and the trim behind it.
    const { records, tail } = await stream.readBatch({ tailOffset: 2 }, { as: 'bytes', signal })
    const { seqNum } = tail ?? (await stream.checkTail({ signal }))
    return { tail: seqNum, part: records.map(snapshotPartOf).findLast((part) => part !== undefined) }
  } catch (error) {
    if (!isStreamMissing(error)) throw error
    return { tail: 0, part: undefined }
  }
}
