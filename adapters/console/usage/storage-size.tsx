import type { Metric } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { formatBytes } from '../format.ts'
import { useLoad } from '../ui/use-load.ts'
import { chartOf, hasMetrics, metricSetsOf, metricsCall, RANGES, type UsageOf } from './metrics.ts'

/** The stored bytes of a basin or stream; nothing if the server does not meter usage. */
export function StorageSize({ of }: { readonly of: UsageOf }) {
  const { client } = useConsole()
  const set = metricSetsOf(of).find((one) => one.set === 'storage')!
  const { data } = useLoad(
    async (signal) => {
      if (!hasMetrics(of)) return undefined
      const end = Math.floor(Date.now() / 1000)
      const { values } = await client.json<{ values: Metric[] }>(metricsCall(of, set, RANGES[0], end), signal)
      return chartOf(values).series[0]?.summary
    },
    [of.basin, of.stream],
  )
  return data === undefined ? null : <span class="size">{formatBytes(data)} stored</span>
}
