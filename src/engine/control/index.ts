import type { EngineContext } from '../context.ts'
import type { BasinService, LocationService, MetricsService, StreamService } from '../services.ts'
import { Basins } from './basins.ts'
import { counted } from './counted.ts'
import { Locations } from './locations.ts'
import type { Streams } from './streams.ts'

/** What is done to basins and streams, and asked of them, beside using them. */
export class Control {
  readonly basins: BasinService
  readonly streams: StreamService
  readonly locations: LocationService
  readonly metrics: MetricsService

  constructor(engine: EngineContext, streams: Streams, metrics: MetricsService) {
    const { usage } = engine
    this.basins = counted('basins', new Basins(engine), usage)
    this.streams = counted('streams', streams, usage)
    this.locations = counted('locations', new Locations(engine), usage)
    this.metrics = counted('metrics', metrics, usage)
  }
}
