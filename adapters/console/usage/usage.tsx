import { useState } from 'preact/hooks'
import { ApiError } from '../api/client.ts'
import type { Metric } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { Select } from '../ui/field.tsx'
import { Note, Problem } from '../ui/notice.tsx'
import { useLoad } from '../ui/use-load.ts'
import { ChartFigure } from './chart-figure.tsx'
import {
  chartOf,
  hasMetrics,
  type MetricSet,
  metricSetsOf,
  metricsCall,
  RANGES,
  type Range,
  type UsageOf,
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
  const { data, error } = useLoad(
    async (signal) => {
      const end = Math.floor(Date.now() / 1000)
      const { values } = await client.json<{ values: Metric[] }>(metricsCall(of, set, range, end), signal)
      const interval = set.takesInterval ? range.interval : of.stream === undefined ? 'hour' : 'minute'
      return { chart: chartOf(values), range: { start: end - range.seconds, end, interval } }
    },
    [of.basin, of.stream, set, range, version],
  )
  const isUnmetered = error instanceof ApiError && error.status === 503
  return (
    <figure>
      <figcaption>{set.title}</figcaption>
      {isUnmetered ? <Note>{error.message}</Note> : <Problem error={error} />}
      {data !== undefined && <ChartFigure title={set.title} chart={data.chart} range={data.range} />}
    </figure>
  )
}
