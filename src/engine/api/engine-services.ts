import type { StreamContext } from '../../api/append-session.ts'
import type { SharedSignal } from '../../runtime/abort.ts'
import type { Clock } from '../../runtime/clock.ts'
import type { Tokens } from '../access/tokens.ts'
import type { ReadBudget } from '../log/read-budget.ts'
import type { Admission } from '../service/admission.ts'
import type { AppendService } from '../service/append-service.ts'
import type { BasinService } from '../service/basin-service.ts'
import type { ReadService } from '../service/read-service.ts'
import type { EngineStats } from '../service/stats.ts'
import type { StreamService } from '../service/stream-service.ts'
import type { UsageMeter } from '../service/usage.ts'

/**
 * The services that the handles of an engine use. Handles are cheap to create and have no state of their own.
 */
export interface EngineServices {
  readonly basins: BasinService
  readonly streams: StreamService
  readonly admission: Admission
  readonly appends: AppendService
  readonly reads: ReadService
  readonly readBudget: ReadBudget
  readonly tokens: Tokens
  readonly usage: UsageMeter
  readonly clock: Clock
  /** The context of the methods of streams that build on others. */
  readonly streamContext: StreamContext
  /** Whether handles create missing basins and streams by default. */
  readonly autoCreate: boolean
  /** The limit of bytes in flight for one append session. */
  readonly sessionInFlightBytes: number
  /** Aborts when the engine begins to close. */
  readonly closing: SharedSignal
  /** Resolves when the storage answers. */
  checkStorage(): Promise<void>
  stats(): EngineStats
  close(): Promise<void>
}
