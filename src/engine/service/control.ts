import type { Clock } from '../../runtime/clock.ts'
import type { StorageSession } from '../../storage/contract.ts'
import type { StreamTable } from '../streams/table.ts'
import type { BasinCreator } from './basin-creator.ts'
import { BasinService, type CipherCheck } from './basin-service.ts'
import type { Catalog } from './catalog.ts'
import type { ConfirmedClock } from './confirmed-clock.ts'
import type { ReadService } from './read-service.ts'
import { EndedStreams, Removal, type RemovalContext } from './removal.ts'
import { StreamBuilder } from './stream-builder.ts'
import { StreamChanges } from './stream-changes.ts'
import type { StreamCreator } from './stream-creator.ts'
import type { ExpiryChecks } from './stream-expiry.ts'
import { StreamService } from './stream-service.ts'
import type { UsageRecorder } from './usage.ts'
import type { WorkRequests } from './work-requests.ts'

interface ControlContext {
  readonly session: StorageSession
  readonly catalog: Catalog
  readonly table: StreamTable
  readonly basinCreator: BasinCreator
  readonly streamCreator: StreamCreator
  readonly work: WorkRequests
  readonly usage: UsageRecorder
  readonly clock: Clock
  readonly confirmedClock: ConfirmedClock
  readonly closing: RemovalContext['closing']
  readonly checkCipher: CipherCheck
  readonly expiry: ExpiryChecks
  readonly reads: ReadService
}

/**
 * Manages basins and streams. Plain appends and reads do not need it, not even to create what they use, so
 * its code is loaded on demand.
 */
export class Control {
  readonly basins: BasinService
  readonly streams: StreamService
  readonly removal: Removal
  readonly ended: EndedStreams

  constructor(context: ControlContext) {
    const { session, catalog, table, basinCreator, work, usage, clock, closing } = context
    const changes = new StreamChanges(session, table, usage, work, clock)
    const builder = new StreamBuilder(context)
    this.basins = new BasinService(catalog, basinCreator, work, clock, context.checkCipher)
    this.streams = new StreamService(catalog, context.streamCreator, changes, builder, context.expiry)
    this.removal = new Removal({ session, changes, closing })
    this.ended = new EndedStreams(context.confirmedClock, this.removal)
  }
}
