import type { Stream } from '../../src/api/stream.ts'
import { invalid } from '../../src/model/errors.ts'
import {
  assertMembers,
  assertSignal,
  type Check,
  hasMethod,
  type MembersOf,
  oneOf,
  unchecked,
} from '../../src/model/validation.ts'

/** Options of `fold`. */
export interface FoldOptions<State, Item> {
  /**
   * The name of the fold among those of its stream: at most 64 characters, without `/`. Folds with the same
   * name share their snapshots. `default` by default.
   */
  readonly name?: string | undefined
  /** The value of a stream without records. */
  readonly initial: State
  /**
   * Returns the value after a record. It must return a new object instead of mutating its argument, depend
   * only on its arguments, and ignore records that do not apply: if it throws, the fold ends with
   * `reducer_failed`.
   */
  readonly reduce: (state: State, record: Item) => State
  /**
   * Identifies `reduce`, `initial` and `encode`. Snapshots of another version are ignored: after a change of
   * the version, the value is derived from the first record again.
   */
  readonly version: number | string
  /**
   * The number of records between two snapshots, and so the most that opening has to read. `Infinity` stores
   * none. 1,000 by default.
   */
  readonly snapshotEvery?: number | undefined
  /**
   * The stream for the snapshots, of this fold alone. By default one in the same basin, named
   * `.fold/NAME/STREAM`.
   */
  readonly snapshots?: Stream | undefined
  /** Converts a value to JSON or bytes for a snapshot. Needs `decode`. By default the value is JSON. */
  readonly encode?: ((state: State) => unknown) | undefined
  /**
   * Converts the stored JSON or bytes back to a value. If it throws, the snapshot is ignored, so it may also
   * validate what is stored.
   */
  readonly decode?: ((encoded: never) => State) | undefined
  /**
   * The reaction to records that were trimmed before the fold read them and that no snapshot covers: `'fail'`
   * (the default) ends the fold with `history_trimmed`, `'skip'` continues with the first remaining record.
   */
  readonly trimmed?: 'fail' | 'skip' | undefined
  /**
   * Whether a missing stream is created instead of failing with `stream_not_found`. Synced streams ignore it.
   * False by default.
   */
  readonly create?: boolean | undefined
  /**
   * Receives failures to load or store a snapshot, which do not end the fold: it reads more records, and
   * stores a snapshot when the next one is due. By default they are ignored, as are exceptions that it
   * throws.
   */
  readonly onSnapshotError?: ((error: unknown) => void) | undefined
  /** Ends the fold with its reason, and without a last snapshot. */
  readonly signal?: AbortSignal | undefined
}

const NAME_LENGTH_MAX = 64
const VERSION_LENGTH_MAX = 100

const isName: Check = (value, field) => {
  if (typeof value === 'string' && /^[^/]+$/.test(value) && value.length <= NAME_LENGTH_MAX) return
  throw invalid(`\`${field}\` must be a string of 1 to ${NAME_LENGTH_MAX} characters without \`/\``, field)
}

const isVersion: Check = (value, field) => {
  if (Number.isFinite(value) || (typeof value === 'string' && value.length <= VERSION_LENGTH_MAX)) return
  throw invalid(
    `\`${field}\` must be a number or a string of at most ${VERSION_LENGTH_MAX} characters`,
    field,
  )
}

const isInterval: Check = (value, field) => {
  if (value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && (value as number) >= 1)) return
  throw invalid(`\`${field}\` must be a positive integer or \`Infinity\``, field)
}

const FOLD_OPTIONS: MembersOf<FoldOptions<unknown, never>> = {
  name: isName,
  initial: unchecked,
  reduce: 'function',
  version: isVersion,
  snapshotEvery: isInterval,
  snapshots: hasMethod('readBatch', 'a stream'),
  encode: 'function',
  decode: 'function',
  trimmed: oneOf(['fail', 'skip']),
  create: 'boolean',
  onSnapshotError: 'function',
  signal: assertSignal,
}

/** Throws `invalid` for options that break a rule. */
export function assertFoldOptions<State>(options: FoldOptions<State, never>): void {
  assertMembers(options, FOLD_OPTIONS, 'options')
  const { reduce, version, encode, decode } = options
  if (reduce === undefined) throw invalid('`reduce` is required', 'reduce')
  if (version === undefined) throw invalid('`version` is required', 'version')
  if (encode !== undefined && decode === undefined) throw invalid('`encode` requires `decode`', 'decode')
}
