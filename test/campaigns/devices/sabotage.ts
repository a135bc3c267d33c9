import type { SyncedStream } from '../../../adapters/sync/index.ts'
import type { Storage, Stream } from '../../../src/index.ts'
import type { Prng } from '../../../src/runtime/prng.ts'
import type { FoldedRecords, FoldReducer } from './fold-check.ts'
import type { DeviceSettings } from './settings.ts'

/** What a test breaks, to show that the checks find it. */
export interface Sabotage {
  /** Settings without which few seeds show what is broken. They replace those of the seed. */
  readonly settings?: Partial<DeviceSettings>
  /** Replaces the stream of the server, as a tab uses it. */
  readonly remote?: (remote: Stream, prng: Prng) => Stream
  /** Changes a synced stream in place. */
  readonly synced?: (synced: SyncedStream, prng: Prng) => void
  /** Replaces the reducer of the folds. */
  readonly reduce?: (reduce: FoldReducer, prng: Prng) => FoldReducer
  /** Replaces what is loaded from a snapshot. */
  readonly restored?: (state: FoldedRecords, prng: Prng) => FoldedRecords
  /** Replaces the version of the folds. */
  readonly version?: (version: number) => number
  /** Replaces the storage of the server. */
  readonly storage?: (storage: Storage, prng: Prng) => Storage
}
