import { formatBytes, formatCount, formatTime } from '../format.ts'
import { Scroll } from '../ui/scroll.tsx'
import { Chart, SERIES_COLOURS } from './chart.tsx'
import { alignedData, type ChartData } from './metrics.ts'

/** More lines than this cannot be told apart; the table has all of them. */
const LINES_MAX = SERIES_COLOURS.length

/** A chart with its legend, and the same values as a table. */
export function ChartFigure(props: {
  readonly title: string
  readonly chart: ChartData
  readonly range: { readonly start: number; readonly end: number; readonly interval: string }
}) {
  const { title, chart, range } = props
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
  if (chart.series.length === 0) return <p class="empty">Nothing in this time</p>
  const drawn = { ...chart, series: chart.series.slice(0, LINES_MAX) }
  return (
    <>
      <ul class="legend">
        {drawn.series.map(({ name, summary }, index) => (
          <li key={name}>
            <svg viewBox="0 0 8 8" aria-hidden="true">
              <rect width="8" height="8" rx="2" class={`series-${index}`} />
            </svg>
            {name} <strong>{format(summary)}</strong>
          </li>
        ))}
      </ul>
      <Chart
        data={alignedData(drawn, range)}
        kind={chart.kind}
        range={range}
        unit={chart.unit}
        format={format}
      />
      <details>
        <summary>Table</summary>
        <Scroll label={`Values of ${title}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Series</th>
                <th scope="col">{chart.unit === 'bytes' ? 'Bytes' : 'Operations'}</th>
              </tr>
            </thead>
            <tbody>
              {chart.series.flatMap(({ name, points }) =>
                points.map(([time, value]) => (
                  <tr key={`${name} ${time}`}>
                    <td>{formatTime(time * 1000).slice(0, 16)}</td>
                    <td>{name}</td>
                    <td>{formatCount(value)}</td>
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
