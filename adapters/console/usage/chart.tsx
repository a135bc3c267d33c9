import { useEffect, useRef, useState } from 'preact/hooks'
import uPlot from 'uplot'
import { formatBytes, formatCount, formatTime } from '../format.ts'
import { Scroll } from '../ui/notice.tsx'
import { type AlignedData, alignedData, type ChartData, stacked, type TimeRange } from './metrics.ts'

/** How many series are drawn, each with the custom property `--series-N`. The table has all of them. */
const SERIES_MAX = 6
const HEIGHT = 140

/** A chart with its legend, and the same values as a table. */
export function ChartFigure(props: {
  readonly title: string
  readonly chart: ChartData
  readonly range: TimeRange
}) {
  const { title, chart, range } = props
  const [cursor, setCursor] = useState<number>()
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
  const data = alignedData({ ...chart, series }, range)
  const time = cursor === undefined ? undefined : data[0][cursor]
  const isAt = cursor !== undefined && time !== undefined
  return (
    <>
      <ul class="legend">
        {series.map(({ name, summary }, index) => (
          <li key={name}>
            <svg viewBox="0 0 8 8" aria-hidden="true">
              <rect width="8" height="8" rx="2" class={`series-${index}`} />
            </svg>
            {name.replaceAll('_', ' ')}{' '}
            <strong>{format(isAt ? (data[index + 1]![cursor] ?? 0) : summary)}</strong>
          </li>
        ))}
        {isAt && <li class="at">{formatTime(time * 1000).slice(0, 16)}</li>}
      </ul>
      <Chart chart={{ ...chart, series }} range={range} format={format} onCursor={setCursor} />
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
                points.map(([at, value]) => (
                  <tr key={`${name} ${at}`}>
                    <td>{formatTime(at * 1000).slice(0, 16)}</td>
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

interface ChartProps {
  readonly chart: ChartData
  readonly range: TimeRange
  readonly format: (value: number) => string
  /** Called with the position in the data that the pointer is at. */
  readonly onCursor: (index: number | undefined) => void
}

/** A chart over time, as wide as its container. Totals are stacked bars, measurements a line. */
function Chart(props: ChartProps) {
  const container = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const { range, chart } = props
  useEffect(() => {
    const element = container.current!
    const data = alignedData(chart, range)
    let plot: uPlot | undefined
    const draw = () => {
      plot?.destroy()
      const drawn = chart.kind === 'totals' ? stacked(data) : data
      plot = new uPlot(plotOptions(element, latest.current, data), drawn as uPlot.AlignedData, element)
    }
    draw()
    const resized = new ResizeObserver(() => {
      if (plot !== undefined && plot.width !== element.clientWidth) {
        plot.setSize({ width: element.clientWidth, height: HEIGHT })
      }
    })
    resized.observe(element)
    // A canvas does not follow changes of the page's colours.
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', draw)
    const themed = new MutationObserver(draw)
    themed.observe(element.closest('.console')!, { attributeFilter: ['data-theme'] })
    return () => {
      resized.disconnect()
      themed.disconnect()
      scheme.removeEventListener('change', draw)
      plot?.destroy()
    }
    // A range belongs to one load, whose chart is as new as it is.
  }, [range])
  return <div ref={container} class="chart" aria-hidden="true" />
}

function plotOptions(element: HTMLElement, props: ChartProps, data: AlignedData): uPlot.Options {
  const { chart, range, format, onCursor } = props
  const colour = (name: string) => resolveColour(element, name)
  const axis = {
    stroke: colour('--quiet'),
    font: '11px system-ui, sans-serif',
    grid: { stroke: colour('--line'), width: 1 },
    ticks: { show: false },
  }
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    hooks: { setCursor: [({ cursor }) => onCursor(cursor.idx ?? undefined)] },
    scales: {
      x: { time: true, range: () => [range.start, range.end] },
      y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] },
    },
    axes: [
      { ...axis, size: 24, values: (_, ticks) => ticks.map((time) => timeLabel(time, range)) },
      {
        ...axis,
        size: 60,
        incrs: INCREMENTS[chart.unit] ?? INCREMENTS.operations!,
        values: (_, ticks) => ticks.map(format),
      },
    ],
    series: [
      {},
      ...chart.series.map((_, index) => {
        const stroke = colour(`--series-${index}`)
        return chart.kind === 'totals'
          ? {
              stroke,
              fill: stroke,
              width: 0,
              points: { show: false },
              paths: uPlot.paths.bars!({ align: 1, size: [0.8, 40] }),
            }
          : {
              stroke,
              width: 1.5,
              points: { show: data[0].length < 50 },
              paths: uPlot.paths.stepped!({ align: 1 }),
            }
      }),
    ],
  }
}

/** The distances of labels, by unit. */
const INCREMENTS: Readonly<Record<string, number[]>> = {
  bytes: Array.from({ length: 50 }, (_, power) => 2 ** power),
  operations: Array.from({ length: 12 }, (_, power) => [
    10 ** power,
    2 * 10 ** power,
    5 * 10 ** power,
  ]).flat(),
}

/** `14:05`, or `01-31` in ranges of days. */
function timeLabel(time: number, { start, end }: TimeRange): string {
  const text = formatTime(time * 1000)
  return end - start > 2 * 86_400 ? text.slice(5, 10) : text.slice(11, 16)
}

/** The colour of a custom property, with `light-dark()` resolved. */
function resolveColour(element: HTMLElement, name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(${name})`
  element.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color
}
