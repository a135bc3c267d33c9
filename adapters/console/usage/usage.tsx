import { useState } from 'preact/hooks'
import { endOfUsage } from '../../../src/model/metrics.ts'
import { ApiError } from '../api/client.ts'
import type { Metric } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { formatBytes } from '../format.ts'
import { useLoad } from '../ui/async.ts'
import { Select } from '../ui/field.tsx'
import { Loading, Note, Problem } from '../ui/notice.tsx'
import { ChartFigure } from './chart.tsx'
import {
  chartOf,
  hasMetrics,
  type MetricSet,
  metricSetsOf,
  metricsCall,
  RANGES,
  type Range,
  type UsageOf,
  wholeIntervals,
} from './metrics.ts'

/** Charts of every metric set of the account, a basin or a stream. */
export function Usage({ of }: { readonly of: UsageOf }) {
  const [range, setRange] = useState<Range>(RANGES[0])
  const [count, setCount] = useState(0)
  if (!hasMetrics(of)) {
    return <Note>The protocol has usage only of basins whose names have 8 characters or more.</Note>
  }
  return (
    <section class="usage">
      <div class="toolbar">
        <Select
          label="Range of time"
          value={range.title}
          options={RANGES.map(({ title }) => [title, title] as const)}
          onChange={(title) => setRange(RANGES.find((one) => one.title === title)!)}
        />
        <button type="button" class="quiet" onClick={() => setCount(count + 1)}>
          Reload
        </button>
      </div>
      <div class="charts">
        {metricSetsOf(of).map((set) => (
          <MetricChart key={set.set} of={of} set={set} range={range} version={count} />
        ))}
      </div>
    </section>
  )
}

function MetricChart(props: {
  readonly of: UsageOf
  readonly set: MetricSet
  readonly range: Range
  readonly version: number
}) {
  const { of, set, range, version } = props
  const { client } = useConsole()
  const { data, error, isLoading } = useLoad(
    async (signal) => {
      const end = endOfUsage(Date.now())
      const { values } = await client.json<{ values: Metric[] }>(metricsCall(of, set, range, end), signal)
      const interval = set.takesInterval ? range.interval : of.stream === undefined ? 'hour' : 'minute'
      return {
        chart: chartOf(values),
        range: wholeIntervals({ start: end - range.seconds, end, interval }),
      }
    },
    [of.basin, of.stream, set, range, version],
  )
  const isUnmetered = error instanceof ApiError && error.status === 503
  return (
    <figure>
      <figcaption>{set.title}</figcaption>
      {isUnmetered ? <Note>{error.message}</Note> : <Problem error={error} />}
      {data === undefined && isLoading && <Loading />}
      {data !== undefined && <ChartFigure title={set.title} chart={data.chart} range={data.range} />}
    </figure>
  )
}

/** The stored bytes of a basin or stream; nothing if the server does not meter usage. */
export function StorageSize({ of }: { readonly of: UsageOf }) {
  const { client } = useConsole()
  const set = metricSetsOf(of).find((one) => one.set === 'storage')!
  const { data } = useLoad(
    async (signal) => {
      if (!hasMetrics(of)) return undefined
      const end = endOfUsage(Date.now())
      const { values } = await client.json<{ values: Metric[] }>(metricsCall(of, set, RANGES[0], end), signal)
      return chartOf(values).series[0]?.summary
    },
    [of.basin, of.stream],
  )
  return data === undefined ? null : <span class="size">{formatBytes(data)} stored</span>
}
