import { useState } from 'preact/hooks'
import { formatBytes, formatCount, formatTime } from '../format.ts'
import { Scroll } from '../ui/notice.tsx'
import { type ChartData, type TimeRange, valueAt } from './metrics.ts'
import { HEIGHT, maximumOf, pathsOf, scaleOf, timesOf, WIDTH } from './plot.ts'

/** How many series are drawn, each with the class `series-N`. The table has all of them. */
const SERIES_MAX = 6

/** A chart with its legend, and the same values as a table. */
export function ChartFigure(props: {
  readonly title: string
  readonly chart: ChartData
  readonly range: TimeRange
}) {
  const { title, chart, range } = props
  const [at, setAt] = useState<number>()
  const format = chart.unit === 'bytes' ? formatBytes : formatCount
  if (chart.labels.length > 0) {
    return (
      <ul class="labels">
        {chart.labels.map((label) => (
          <li key={label}>{label}</li>
        ))}
      </ul>
    )
  }
  if (chart.series.length === 0) return <p class="empty">No usage in this time.</p>
  const series = chart.series.slice(0, SERIES_MAX)
  return (
    <>
      <ul class="legend">
        {series.map((one, index) => (
          <li key={one.name}>
            <svg viewBox="0 0 8 8" aria-hidden="true">
              <rect width="8" height="8" rx="2" class={`series-${index}`} />
            </svg>
            {one.name.replaceAll('_', ' ')}{' '}
            <strong>
              {format(at === undefined ? one.summary : valueAt(one, chart.kind, at, range.step))}
            </strong>
          </li>
        ))}
        {at !== undefined && <li class="at">{formatTime(at).slice(0, 16)}</li>}
      </ul>
      <Chart chart={{ ...chart, series }} range={range} format={format} at={at} onPoint={setAt} />
      <details>
        <summary>Table</summary>
        <Scroll label={`Values of ${title}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Series</th>
                <th scope="col" class="number">
                  {chart.unit === 'bytes' ? 'Bytes' : 'Operations'}
                </th>
              </tr>
            </thead>
            <tbody>
              {chart.series.flatMap(({ name, points }) =>
                points.map(([time, value]) => (
                  <tr key={`${name} ${time}`}>
                    <td>{formatTime(time).slice(0, 16)}</td>
                    <td>{name}</td>
                    <td class="number">{formatCount(value)}</td>
                  </tr>
                )),
              )}
            </tbody>
          </table>
        </Scroll>
      </details>
    </>
  )
}

/** A chart over time, as wide as its container. Totals are bars on each other, measurements a line. */
function Chart(props: {
  readonly chart: ChartData
  readonly range: TimeRange
  readonly format: (value: number) => string
  /** The beginning of the interval under the pointer. */
  readonly at: number | undefined
  readonly onPoint: (at: number | undefined) => void
}) {
  const { chart, range, format, at, onPoint } = props
  const { start, end, step } = range
  const scale = scaleOf(maximumOf(chart), chart.unit)
  const lines = Array.from({ length: scale.top / scale.step + 1 }, (_, index) => index * scale.step)
  const part = (time: number) => (time - start) / (end - start)
  return (
    <div class="chart" aria-hidden="true">
      {lines.map((value) => (
        <span key={value} class="value" style={{ bottom: `${(value / scale.top) * 100}%` }}>
          {format(value)}
        </span>
      ))}
      {timesOf(range).map((time) => (
        <span key={time} class="time" style={{ left: `${part(time) * 100}%` }}>
          {timeLabel(time, range)}
        </span>
      ))}
      <svg
        aria-hidden="true"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        onPointerMove={({ currentTarget, clientX }) => {
          const { left, width } = currentTarget.getBoundingClientRect()
          const count = Math.floor(((clientX - left) / width) * ((end - start) / step))
          onPoint(Math.min(Math.max(start + count * step, start), end - step))
        }}
        onPointerLeave={() => onPoint(undefined)}
      >
        {at !== undefined && (
          <rect class="at" x={part(at) * WIDTH} width={part(start + step) * WIDTH} height={HEIGHT} />
        )}
        <path
          class="lines"
          d={lines.map((value) => `M0 ${HEIGHT * (1 - value / scale.top)}h${WIDTH}`).join('')}
        />
        {pathsOf(chart, range, scale.top).map((path, index) => (
          <path key={index} class={`${chart.kind} series-${index}`} d={path} />
        ))}
      </svg>
    </div>
  )
}

/** `14:05`, or `01-31` in ranges of days. */
function timeLabel(time: number, { start, end }: TimeRange): string {
  const text = formatTime(time)
  return end - start > 2 * 86_400_000 ? text.slice(5, 10) : text.slice(11, 16)
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
