import type { Access } from './access/index.ts'
import type { Connection, EngineContext } from './context.ts'
import type { GatedServices } from './gate/index.ts'
import type { EngineStats } from './stats.ts'

/** An engine as one caller sees it: what the public classes call. */
export interface EngineView extends GatedServices {
  readonly engine: EngineContext
  readonly access: Access
  readonly stats: () => EngineStats
  readonly connection: Connection
}
