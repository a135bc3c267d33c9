import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { StreamTable } from '../streams/table.ts'
import type { BasinCreator } from './basin-creator.ts'
import { BasinService, type CipherCheck } from './basin-service.ts'
import type { Catalog } from './catalog.ts'
import type { Deadlines } from './deadlines.ts'
import type { ReadService } from './read-service.ts'
import { StreamBuilder } from './stream-builder.ts'
import type { StreamChanges } from './stream-changes.ts'
import type { StreamCreator } from './stream-creator.ts'
import { StreamService } from './stream-service.ts'
import type { WorkRequests } from './work-requests.ts'

interface ControlContext {
  readonly session: StorageSession
  readonly catalog: Catalog
  readonly table: StreamTable
  readonly basinCreator: BasinCreator
  readonly streamCreator: StreamCreator
  readonly work: WorkRequests
  readonly clock: Clock
  readonly checkCipher: CipherCheck
  readonly changes: StreamChanges
  readonly deadlines: Deadlines
  readonly reads: ReadService
}

/**
 * Manages basins and streams. Plain appends and reads do not need it, not even to create what they use, so
 * its code is loaded on demand.
 */
export class Control {
  readonly basins: BasinService
  readonly streams: StreamService

  constructor(context: ControlContext) {
    const { catalog, basinCreator, work, clock, changes } = context
    const builder = new StreamBuilder(context)
    this.basins = new BasinService(catalog, basinCreator, work, clock, context.checkCipher)
    this.streams = new StreamService(catalog, context.streamCreator, changes, builder, context.deadlines)
  }
}
