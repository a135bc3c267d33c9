import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { endOfUsage } from '../../../src/model/metrics.ts'
import { useConsole, useLoad } from '../context.ts'
import { formatBytes, formatCount, formatTime } from '../format.ts'
import { Button, LoadStatus, Scroll } from '../ui/elements.tsx'
import { Select } from '../ui/fields.tsx'
import { Table } from '../ui/table.tsx'
import {
  type ChartData,
  type ChartedSet,
  chartOf,
  metricSetsOf,
  queryMetrics,
  RANGES,
  type Range,
  type TimeRange,
  tableOf,
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

/** How many series are drawn, each in the colour `--series-N`. The table has all of them. */
const SERIES_MAX = 6
const HEIGHT = 180
/** The distances of bytes on an axis. */
const POWERS_OF_TWO = Array.from({ length: 50 }, (_, exponent) => 2 ** exponent)

/** A chart with its legend, and the same values as a table. */
function ChartFigure(props: {
  readonly title: string
  readonly chart: ChartData
  readonly range: TimeRange
}) {
  const { title, chart, range } = props
  if (chart.labels.length > 0) {
    return (
      <ul class="labels">
        {chart.labels.map((label) => (
          <li key={label}>{label}</li>
        ))}
      </ul>
    )
  }
  const unit = chart.unit === 'bytes' ? 'Bytes' : 'Operations'
  if (chart.series.length === 0) return <p class="empty">No usage in this time.</p>
  return (
    <>
      <Chart chart={{ ...chart, series: chart.series.slice(0, SERIES_MAX) }} range={range} />
      <details>
        <summary>Table</summary>
        <Scroll label={`Values of ${title}`}>
          <Table
            label={title}
            columns={[
              { title: 'Time', cell: ({ time }) => formatTime(time, 'minute') },
              { title: 'Series', cell: ({ name }) => name },
              { title: unit, class: 'number', cell: ({ value }) => formatCount(value) },
            ]}
            rows={chart.series.flatMap(({ name, points }) =>
              points.map(([time, value]) => ({ name, time, value })),
            )}
          />
        </Scroll>
      </details>
    </>
  )
}

/** A chart over time, as wide as its container. Totals are bars, measurements a line with steps. */
function Chart({ chart, range }: { readonly chart: ChartData; readonly range: TimeRange }) {
  const element = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const container = element.current!
    const plot = new uPlot(optionsOf(chart, container), tableOf(chart, range), container)
    const resized = new ResizeObserver(() => plot.setSize({ width: container.clientWidth, height: HEIGHT }))
    resized.observe(container)
    return () => {
      resized.disconnect()
      plot.destroy()
    }
  }, [chart, range])
  return <div ref={element} class="chart" aria-hidden="true" />
}

function optionsOf({ kind, unit, series }: ChartData, container: HTMLElement): uPlot.Options {
  const format = unit === 'bytes' ? formatBytes : formatCount
  const colour = (name: string) => colourOf(container, name)
  const axis: uPlot.Axis = {
    stroke: colour('--quiet'),
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  const paths =
    kind === 'totals' ? uPlot.paths.bars!({ size: [0.8, 40], align: 1 }) : uPlot.paths.stepped!({ align: 1 })
  return {
    width: container.clientWidth,
    height: HEIGHT,
    ms: 1,
    cursor: { drag: { setScale: false } },
    scales: { y: { range: (_, __, max) => [0, Math.max(1, max)] } },
    axes: [
      { ...axis, values: (_, times) => times.map(timeLabel) },
      {
        ...axis,
        size: 70,
        values: (_, values) => values.map(format),
        ...(unit === 'bytes' && { incrs: POWERS_OF_TWO }),
      },
    ],
    series: [
      { value: (_, time) => (time === null ? '' : formatTime(time, 'minute')) },
      ...series.map(({ name, summary }, index) => ({
        label: name.replaceAll('_', ' '),
        stroke: colour(`--series-${index}`),
        ...(kind === 'totals' && { fill: colour(`--series-${index}`) }),
        paths,
        points: { show: false },
        // Without a pointer, the legend has the sum of totals, or the last measurement.
        value: (_: uPlot, value: number | null) => format(value ?? summary),
      })),
    ],
  }
}

/** A time on an axis: the date at midnight. */
function timeLabel(ms: number): string {
  const [date, time] = formatTime(ms, 'minute').split(' ')
  return time === '00:00' ? date!.slice(-5) : time!
}

/** The colour of a variable, as a canvas needs it: without `light-dark()`. */
function colourOf(container: HTMLElement, name: string): string {
  container.style.color = `var(${name})`
  return getComputedStyle(container).color
}

/** A small line of values; nothing if there are fewer than two. It shows what the text beside it says. */
export function Sparkline({ values }: { readonly values: readonly number[] | undefined }) {
  if (values === undefined || values.length < 2) return null
  const top = Math.max(...values) || 1
  const step = 60 / (values.length - 1)
  const points = values.map(
    (value, index) => `${(index * step).toFixed(1)} ${(13 - (value / top) * 12).toFixed(1)}`,
  )
  return (
    <svg class="spark" viewBox="0 0 60 14" aria-hidden="true">
      <path d={`M${points.join('L')}`} />
    </svg>
  )
}
