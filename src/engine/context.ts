import type { StorageSession } from '../storage/contract.ts'
import type { Background } from './background.ts'
import type { ByteBudget } from './byte-budget.ts'
import type { Catalog } from './catalog.ts'
import type { Settings } from './options.ts'
import type { StreamLogs } from './stream-logs.ts'

/** What the parts of one open engine share. */
export interface EngineContext {
  readonly settings: Settings
  readonly session: StorageSession
  readonly catalog: Catalog
  readonly logs: StreamLogs
  readonly background: Background
  readonly appendBudget: ByteBudget
  /** Aborts when the engine closes. */
  readonly closing: AbortSignal
}

export interface StreamRef {
  readonly basin: string
  readonly stream: string
}
