import type { StreamConfigInput } from '../model/config.ts'
import type { GivenKey } from '../model/given-key.ts'
import type { StorageSession } from '../storage/contract.ts'
import type { Allowance } from './allowance.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { Catalog } from './catalog.ts'
import type { LateRest } from './late-rest.ts'
import type { Settings } from './options.ts'
import type { ReadAhead } from './read-ahead.ts'
import type { StreamLogs } from './stream-logs.ts'
import type { UsageRecorder } from './usage/usage-recorder.ts'

/** What the parts of one open engine share. */
export interface EngineContext {
  readonly settings: Settings
  readonly session: StorageSession
  readonly catalog: Catalog
  readonly logs: StreamLogs
  readonly rest: LateRest
  readonly appendBudget: ByteBudget
  /** Metered bytes of all appends that were asked for and are not settled: in flight, or waiting for whatever it is. */
  readonly pendingBytes: Allowance
  /** Reads and append sessions that are open. */
  readonly sessions: Allowance
  readonly readAhead: ReadAhead
  readonly usage: UsageRecorder
  /** Aborts when the engine closes. */
  readonly closing: AbortSignal
}

export interface StreamRef {
  readonly basin: string
  readonly stream: string
  /** What errors call it, when callers know the stream by another name than the storage. */
  readonly shownAs?: string
}

/** Stands for a connection in the usage metrics, where appends are counted by connection: any object, compared by identity. */
export type Connection = object

/** A stream, and how a caller uses its records. */
export interface StreamUse {
  readonly ref: StreamRef
  readonly creation: CreationPolicy
  /** For streams with a cipher; others ignore it. */
  readonly key: GivenKey | undefined
  readonly connection: Connection
}

/** What happens when the stream of a data operation does not exist (wire-behaviour.md 8.6). */
export interface CreationPolicy {
  /** Create it, and its basin, whatever the basin's configuration says. */
  readonly always: boolean
  /** Configuration of a stream that is created. */
  readonly config?: StreamConfigInput | undefined
}
