import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { formatTime } from '../format.ts'

/** The custom properties with the colours of series, in order. */
export const SERIES_COLOURS = [
  '--series-0',
  '--series-1',
  '--series-2',
  '--series-3',
  '--series-4',
  '--series-5',
]

const HEIGHT = 140

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
function timeLabel(time: number, { start, end }: { readonly start: number; readonly end: number }): string {
  const text = formatTime(time * 1000)
  return end - start > 2 * 86_400 ? text.slice(5, 10) : text.slice(11, 16)
}

/** A chart over time, as wide as its container. Its values are also in a table: see `ChartFigure`. */
export function Chart(props: {
  readonly data: [times: number[], ...values: (number | null)[][]]
  readonly kind: 'totals' | 'measurements'
  readonly range: { readonly start: number; readonly end: number }
  readonly unit: string
  readonly format: (value: number) => string
}) {
  const { data, kind, range, unit, format } = props
  const container = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const element = container.current!
    let plot: uPlot | undefined
    const draw = () => {
      plot?.destroy()
      const colour = (name: string) => resolveColour(element, name)
      const axis = {
        stroke: colour('--quiet'),
        grid: { stroke: colour('--line'), width: 1 },
        ticks: { show: false },
      }
      plot = new uPlot(
        {
          width: element.clientWidth,
          height: HEIGHT,
          legend: { show: false },
          cursor: { drag: { x: false, y: false } },
          scales: {
            x: { time: true, range: () => [range.start, range.end] },
            y: { range: (_, __, max) => [0, Math.max(max * 1.1, 1)] },
          },
          axes: [
            { ...axis, size: 26, values: (_, ticks) => ticks.map((time) => timeLabel(time, range)) },
            {
              ...axis,
              size: 64,
              incrs: INCREMENTS[unit] ?? INCREMENTS.operations!,
              values: (_, ticks) => ticks.map(format),
            },
          ],
          series: [
            {},
            ...data.slice(1).map((_, index) => {
              const stroke = colour(SERIES_COLOURS[index]!)
              return kind === 'totals'
                ? {
                    stroke,
                    fill: stroke,
                    width: 0,
                    points: { show: false },
                    paths: uPlot.paths.bars!({ size: [0.7, 40] }),
                  }
                : {
                    stroke,
                    width: 1.5,
                    points: { show: data[0].length < 50 },
                    paths: uPlot.paths.stepped!({ align: 1 }),
                  }
            }),
          ],
        },
        data as uPlot.AlignedData,
        element,
      )
    }
    draw()
    const resized = new ResizeObserver(() => {
      if (plot !== undefined && plot.width !== element.clientWidth) {
        plot.setSize({ width: element.clientWidth, height: HEIGHT })
      }
    })
    resized.observe(element)
    // A canvas does not follow the colours of the page by itself.
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
  }, [data, kind, range, unit, format])
  return <div ref={container} class="chart" aria-hidden="true" />
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
