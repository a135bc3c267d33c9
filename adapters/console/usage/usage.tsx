import { useState } from 'preact/hooks'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { endOfUsage } from '../../../src/model/metrics.ts'
import { useConsole } from '../context.ts'
import { formatBytes, formatCount } from '../format.ts'
import { Button, LoadStatus } from '../ui/elements.tsx'
import { Select } from '../ui/fields.tsx'
import { useLoad } from '../ui/load.ts'
import { ChartFigure, Sparkline } from './chart.tsx'
import {
  type ChartedSet,
  chartOf,
  metricSetsOf,
  queryMetrics,
  RANGES,
  type Range,
  type UsageOf,
  wholeIntervals,
} from './metrics.ts'

/** Charts of every metric set of the account, a basin or a stream. */
export function Usage({ of }: { readonly of: UsageOf }) {
  const [range, setRange] = useState<Range>(RANGES[0])
  const [count, setCount] = useState(0)
  return (
    <section class="usage">
      <div class="toolbar">
        <Select
          label="Range of time"
          value={range.title}
          options={RANGES.map(({ title }) => [title, title] as const)}
          onChange={(title) => setRange(RANGES.find((one) => one.title === title)!)}
        />
        <Button class="quiet" onClick={() => setCount(count + 1)}>
          Reload
        </Button>
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
  readonly set: ChartedSet
  readonly range: Range
  readonly version: number
}) {
  const { of, set, range, version } = props
  const { connection } = useConsole()
  const loaded = useLoad(
    async (signal) => {
      const end = endOfUsage(Date.now()) * 1000
      const metrics = await queryMetrics(connection, of, set, range, end, signal)
      const interval = set.takesInterval ? range.interval : of.stream === undefined ? 'hour' : 'minute'
      return { chart: chartOf(metrics), range: wholeIntervals(end - range.ms, end, interval) }
    },
    [of.basin, of.stream, set, range, version],
  )
  const { data, error } = loaded
  const isUnmetered = HeadwaterError.is(error) && error.code === 'unsupported'
  return (
    <figure>
      <figcaption>{set.title}</figcaption>
      {isUnmetered ? <p class="notice">{error.message}</p> : <LoadStatus of={loaded} />}
      {data !== undefined && <ChartFigure title={set.title} chart={data.chart} range={data.range} />}
    </figure>
  )
}

const SAMPLE_INTERVAL_MS = 2000
const RATES_MAX = 60

/** Totals of the process since it started, and what it calls them. */
const TOTALS = [
  ['Records appended', 'headwater_appended_records_total', formatCount],
  ['Bytes appended', 'headwater_appended_bytes_total', formatBytes],
  ['Bytes read', 'headwater_read_bytes_total', formatBytes],
] as const

/** Records and bytes per second over all basins; nothing where the server has no counters. */
export function Throughput() {
  const { connection } = useConsole()
  const { data: samples = [] } = useLoad<readonly Sample[]>(
    async (signal, before = []) => {
      const totals = await connection.own('/metrics', totalsOf, signal)
      return [...before, { at: performance.now(), totals }].slice(-RATES_MAX)
    },
    [],
    SAMPLE_INTERVAL_MS,
  )
  if (samples.length < 2) return null
  return (
    <dl class="numbers">
      {TOTALS.map(([title, , format], index) => {
        const rates = samples.slice(1).map(({ at, totals }, before) => {
          const { at: since, totals: earlier } = samples[before]!
          return Math.max(0, ((totals[index]! - earlier[index]!) * 1000) / (at - since))
        })
        return (
          <div key={title}>
            <dt>{title}</dt>
            <dd>
              <Sparkline values={rates} /> {format(Math.round(rates.at(-1)!))}/s
            </dd>
          </div>
        )
      })}
    </dl>
  )
}

interface Sample {
  readonly at: number
  readonly totals: readonly number[]
}

function totalsOf(text: unknown): number[] {
  return TOTALS.map(([, name]) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(String(text))?.[1] ?? 0))
}
