/**
 * Usage metrics of accounts, basins and streams, as an option of `open`.
 *
 * @packageDocumentation
 */

import type { UsageModule } from '../engine/usage.ts'
import { StoredUsageMeter } from './usage-meter.ts'

export type {
  AppendUsage,
  HistogramCounts,
  MetricsService,
  UsageContext,
  UsageCounters,
  UsageMeter,
  UsageModule,
} from '../engine/usage.ts'

/**
 * Meters usage for `open({ storage, usage: usageMetrics() })`: operations, appends, reads and stored bytes of
 * the account, basins and streams, stored by minute, hour and day. Enables `metrics()` on the engine, basins
 * and streams, and `counters()`. The usage of engines that share a storage adds up.
 *
 * ```ts
 * const hw = await open({ storage: memory(), usage: usageMetrics() })
 * await hw.basin('shop').stream('orders').append('first')
 * console.log(await hw.counters())
 * ```
 */
export function usageMetrics(): UsageModule {
  return { open: (context) => new StoredUsageMeter(context) }
}
