import type { Basins } from './basins.ts'
import type { EngineContext } from './context.ts'
import type { Reading } from './reading.ts'
import type { StreamAccess } from './stream-access.ts'
import type { Streams } from './streams.ts'

/** What the public classes call. */
export interface EngineServices {
  readonly engine: EngineContext
  readonly basins: Basins
  readonly streams: Streams
  readonly access: StreamAccess
  readonly reading: Reading
}
