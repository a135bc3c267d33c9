import { BATCH_SIZES, batchSizeRow, WAYS } from '../rows/batch-size.ts'
import type { Row } from './table.ts'

const WIDTH = 760
const HEIGHT = 460
const LEFT = 100
const RIGHT = 20
const TOP = 40
const BOTTOM = 130
const LINE_HEIGHT = 20
/** Readable on white and on black. */
const COLORS = ['#3b82c4', '#c0762a', '#4b9b5a', '#a765b8']

/** A chart of records a second by batch size. Undefined if a point is missing. */
export function chartOf(rows: readonly Row[]): string | undefined {
  const lines = Object.entries(WAYS).map(([way, { title }]) => ({
    title,
    rates: BATCH_SIZES.map((size) => {
      const wallMs = rows.find(({ name }) => name === batchSizeRow(way, size))?.wallMs
      return wallMs === undefined ? Number.NaN : (size / wallMs) * 1_000
    }),
  }))
  const rates = lines.flatMap((line) => line.rates)
  if (rates.some(Number.isNaN)) return undefined
  const low = Math.floor(Math.log10(Math.min(...rates)))
  const high = Math.ceil(Math.log10(Math.max(...rates)))
  const xOf = (index: number) => LEFT + (index * (WIDTH - LEFT - RIGHT)) / (BATCH_SIZES.length - 1)
  const yOf = (rate: number) =>
    HEIGHT - BOTTOM - ((Math.log10(rate) - low) * (HEIGHT - TOP - BOTTOM)) / (high - low)
  const powers = Array.from({ length: high - low + 1 }, (_, index) => 10 ** (low + index))
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="14">`,
    '<title>Records of 1 KiB appended a second, by batch size</title>',
    '<style>text{fill:#333}.grid{stroke:#8886}@media(prefers-color-scheme:dark){text{fill:#ddd}}</style>',
    ...powers.map((power) => gridLine(yOf(power), power)),
    ...BATCH_SIZES.map((size, index) => text(xOf(index), HEIGHT - BOTTOM + 22, String(size), 'middle')),
    text(LEFT - 10, TOP - 20, 'records a second', 'start'),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 42, 'records of 1 KiB in a batch', 'middle'),
    ...lines.flatMap((line, index) => {
      const points = line.rates.map((rate, at) => `${round(xOf(at))},${round(yOf(rate))}`)
      const y = HEIGHT - BOTTOM + 66 + index * LINE_HEIGHT
      const color = COLORS[index]!
      return [
        `<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="2.5"/>`,
        ...points.map((point) => `<circle ${centerOf(point)} r="4" fill="${color}"/>`),
        `<path d="M${LEFT} ${y - 5}h30" stroke="${color}" stroke-width="2.5"/>`,
        text(LEFT + 40, y, line.title, 'start'),
      ]
    }),
    '</svg>\n',
  ].join('\n')
}

function gridLine(y: number, rate: number): string {
  const line = `<path class="grid" d="M${LEFT} ${round(y)}H${WIDTH - RIGHT}"/>`
  return line + text(LEFT - 10, y + 5, rate.toLocaleString('en'), 'end')
}

function text(x: number, y: number, content: string, anchor: string): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${content}</text>`
}

function centerOf(point: string): string {
  const [x, y] = point.split(',')
  return `cx="${x}" cy="${y}"`
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
