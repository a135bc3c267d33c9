import type { TokenHolder } from '../access/token-holder.ts'
import type { Services } from '../services.ts'
import type { UsageRecorder } from '../usage/usage-recorder.ts'
import { Gate } from './gate.ts'
import { GatedBasins } from './gated-basins.ts'
import { GatedLocations } from './gated-locations.ts'
import { GatedMetrics } from './gated-metrics.ts'
import { GatedRecords } from './gated-records.ts'
import { GatedStreams } from './gated-streams.ts'
import { GatedTokens } from './gated-tokens.ts'

/** What a caller may use. */
export interface GatedServices {
  readonly gate: Gate
  readonly basins: GatedBasins
  readonly streams: GatedStreams
  readonly records: GatedRecords
  readonly tokens: GatedTokens
  readonly metrics: GatedMetrics
  readonly locations: GatedLocations
}

/** Without a holder of a token: for the owner of the engine. */
export function gated(
  services: Services,
  usage: UsageRecorder,
  holder: TokenHolder | undefined,
): GatedServices {
  const gate = new Gate(holder, usage)
  return {
    gate,
    basins: new GatedBasins(gate, services.basins),
    streams: new GatedStreams(gate, services.streams),
    records: new GatedRecords(gate, services.records),
    tokens: new GatedTokens(gate, services.tokens),
    metrics: new GatedMetrics(gate, services.metrics),
    locations: new GatedLocations(gate, services.locations),
  }
}
