import type { Resource } from '../../core/permission.ts'
import type { Operation } from '../../model/operations.ts'
import type { TokenHolder } from '../access/token-holder.ts'
import type { CallerServices } from '../services.ts'
import { Gate } from './gate.ts'
import { GatedBasins } from './gated-basins.ts'
import { GatedLocations } from './gated-locations.ts'
import { GatedMetrics } from './gated-metrics.ts'
import { GatedRecords } from './gated-records.ts'
import { GatedStreams } from './gated-streams.ts'
import { GatedTokens } from './gated-tokens.ts'

export interface GatedServices extends CallerServices {
  /** Rejects with `authn` or `permission_denied` unless the holder may do one of the operations. */
  check(operations: Operation | readonly Operation[], resource: Resource): Promise<void>
}

/** The services, as the holder of a token may use them. */
export function gated(services: CallerServices, holder: TokenHolder): GatedServices {
  const gate = new Gate(holder)
  return {
    basins: new GatedBasins(gate, services.basins),
    streams: new GatedStreams(gate, services.streams),
    records: new GatedRecords(gate, services.records),
    tokens: new GatedTokens(gate, services.tokens),
    metrics: new GatedMetrics(gate, services.metrics),
    locations: new GatedLocations(gate, services.locations),
    check: async (operations, resource) => {
      await gate.permit(operations, resource)
    },
  }
}
