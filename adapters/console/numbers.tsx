import type { ComponentChildren } from 'preact'
import { useEffect, useReducer, useRef } from 'preact/hooks'
import type { Basin } from '../../src/api/basin.ts'
import type { Stream } from '../../src/api/stream.ts'
import type { RetentionPolicy } from '../../src/model/config.ts'
import { endOfUsage } from '../../src/model/metrics.ts'
import type { Connection } from './connection.ts'
import { useConsole, useLoad } from './context.ts'
import { formatBytes, formatCount, formatDuration, formatTime } from './format.ts'
import type { Column } from './ui/table.tsx'
import { chartOf, RANGES, type ResourceName, tableOf, wholeIntervals } from './usage/metrics.ts'
import { Sparkline } from './usage/usage.tsx'

/** The numbers of a basin or a stream in lists and headings. Undefined ones are not cheap to know. */
export interface Numbers {
  /** Metered bytes that are stored. */
  readonly bytes?: number | undefined
  /** `default`: that of the server. */
  readonly retention?: RetentionPolicy | 'default' | undefined
  /** The sequence numbers of the first record that remains in a stream, and of the next one. */
  readonly first?: number | undefined
  readonly next?: number | undefined
  /**
   * The time of the last record of a stream, or the minute of the last append to a basin in the last hour, in
   * milliseconds since the Unix epoch; 0 if there was none.
   */
  readonly lastWrite?: number | undefined
  /** Records of a stream, or bytes of a basin, per second. */
  readonly rate?: number | undefined
  /** Earlier rates, the latest last. */
  readonly rates?: readonly number[] | undefined
  /** The time at which the tail was read, in milliseconds. */
  readonly at?: number | undefined
}

/** How many rates are kept. */
const RATES_MAX = 60

/** The numbers of a stream, else of a basin, which may follow earlier ones. */
export function loadNumbers(
  { hw }: Connection,
  { basin, stream }: ResourceName,
  before: Numbers | undefined,
  signal: AbortSignal,
): Promise<Numbers> {
  const handle = hw.basin(basin)
  return stream === undefined
    ? basinNumbers(handle, signal)
    : streamNumbers(handle.stream(stream), before, signal)
}

/** The numbers of a stream. Later loads read only the tail, whose movement is the rate. */
async function streamNumbers(
  handle: Stream,
  before: Numbers | undefined,
  signal: AbortSignal,
): Promise<Numbers> {
  const tail = await known(handle.checkTail({ signal }))
  const at = performance.now()
  const next = tail?.seqNum
  const moved = { next, lastWrite: tail?.timestamp, at }
  if (before?.at !== undefined && before.next !== undefined && next !== undefined) {
    const rate = ((next - before.next) * 1000) / Math.max(1, at - before.at)
    return { ...before, ...moved, rate, rates: [...(before.rates ?? []), rate].slice(-RATES_MAX) }
  }
  const [config, stored, records] = await Promise.all([
    known(handle.config({ signal })),
    storedBytes(handle, signal),
    // Encrypted records cannot be read without the key.
    known(handle.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes', signal })),
  ])
  const first = next === 0 ? 0 : records && (records.records[0]?.seqNum ?? next)
  return { ...moved, first, retention: config?.retentionPolicy, bytes: stored }
}

/** The numbers of a basin: from its usage, and the retention of its new streams. */
async function basinNumbers(handle: Basin, signal: AbortSignal): Promise<Numbers> {
  const hour = lastHour()
  const [config, bytes, metrics] = await Promise.all([
    known(handle.config({ signal })),
    storedBytes(handle, signal),
    known(handle.metrics({ set: 'append-throughput', ...hour, interval: 'minute' }, { signal })),
  ])
  const retention = config && (config.defaultStreamConfig.retentionPolicy ?? 'default')
  if (metrics === undefined) return { bytes, retention }
  const [times, ...series] = tableOf(chartOf(metrics), wholeIntervals(hour.start, hour.end, 'minute'))
  const rates = times.map((_, index) => series.reduce((sum, values) => sum + values[index]!, 0) / 60)
  const lastWrite = times[rates.findLastIndex((rate) => rate > 0)] ?? 0
  return { bytes, retention, rate: rates.at(-2), rates, lastWrite }
}

async function storedBytes(handle: Basin | Stream, signal: AbortSignal): Promise<number | undefined> {
  const metrics = await known(handle.metrics({ set: 'storage', ...lastHour() }, { signal }))
  return metrics && chartOf(metrics).series[0]?.summary
}

function lastHour() {
  const end = endOfUsage(Date.now()) * 1000
  return { start: end - RANGES[0].ms, end }
}

/** Resolves to undefined for what a server does not tell or the token does not permit. */
function known<Value>(value: Promise<Value>): Promise<Value | undefined> {
  return value.catch(() => undefined)
}

/** `7 days`, `forever`, `server default`. */
function retentionText(retention: RetentionPolicy | 'default'): string {
  if (retention === 'default') return 'server default'
  return retention === 'infinite' ? 'forever' : formatDuration(retention.ageSeconds)
}

/** A number to sort by. */
function retentionSeconds(retention: RetentionPolicy | 'default'): number {
  if (retention === 'default') return 0
  return retention === 'infinite' ? Number.POSITIVE_INFINITY : retention.ageSeconds
}

type NumberTitle = 'Records' | 'Stored' | 'First' | 'Next' | 'Last write' | 'Rate' | 'Appended' | 'Retention'

type NumberColumn = readonly [
  value: (numbers: Numbers) => number | undefined,
  cell: (value: number, numbers: Numbers) => ComponentChildren,
]

const withLine = (text: string, { rates }: Numbers) => (
  <>
    <Sparkline values={rates} /> {text}
  </>
)

const COLUMNS: Readonly<Record<NumberTitle, NumberColumn>> = {
  Records: [({ first, next }) => (first === undefined ? first : next! - first), formatCount],
  Stored: [({ bytes }) => bytes, formatBytes],
  First: [({ first }) => first, formatCount],
  Next: [({ next }) => next, formatCount],
  'Last write': [({ lastWrite }) => lastWrite || undefined, (ms) => formatTime(ms, 'minute')],
  Rate: [({ rate }) => rate, (rate, numbers) => withLine(`${rateText(rate)}/s`, numbers)],
  Appended: [({ rate }) => rate, (rate, numbers) => withLine(`${formatBytes(rate)}/s`, numbers)],
  Retention: [
    ({ retention }) => retention && retentionSeconds(retention),
    (_, { retention }) => retentionText(retention!),
  ],
}

/** Columns that phones show, too. */
const PRIMARY: readonly NumberTitle[] = ['Records', 'Stored']

export const BASIN_NUMBERS: readonly NumberTitle[] = ['Stored', 'Appended', 'Last write', 'Retention']
export const STREAM_NUMBERS: readonly NumberTitle[] = [
  ...(['Records', 'Stored', 'First', 'Next', 'Last write', 'Rate', 'Retention'] as const),
]

function rateText(rate: number): string {
  return formatCount(rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate))
}

/** The numbers of the row of a list, once they are loaded. */
export interface WithNumbers {
  readonly numbers?: Numbers | undefined
}

/** Columns of a list, each sorted by its number. What is not known is empty. */
export function numberColumns(titles: readonly NumberTitle[]): Column<WithNumbers>[] {
  return titles.map((title) => ({
    title,
    class: PRIMARY.includes(title) ? 'number' : 'number secondary',
    sortBy: ({ numbers }) => numbers && COLUMNS[title][0](numbers),
    cell: ({ numbers }) => numberText(title, numbers),
  }))
}

function numberText(title: NumberTitle, numbers: Numbers | undefined): ComponentChildren {
  const [numberOf, cell] = COLUMNS[title]
  const value = numbers && numberOf(numbers)
  return value === undefined ? '' : cell(value, numbers!)
}

const INTERVAL_MS = 5000

/** The numbers of one basin or stream, beside its name. */
export function Facts({ of }: { readonly of: ResourceName }) {
  const { connection } = useConsole()
  const { data } = useLoad<Numbers>(
    (signal, before) => loadNumbers(connection, of, before, signal),
    [],
    INTERVAL_MS,
  )
  const titles = of.stream === undefined ? BASIN_NUMBERS : STREAM_NUMBERS
  const facts = titles.map((title) => [title, numberText(title, data)] as const)
  return (
    <dl class="numbers">
      {facts.map(
        ([title, text]) =>
          text !== '' && (
            <div key={title}>
              <dt>{title}</dt>
              <dd>{text}</dd>
            </div>
          ),
      )}
    </dl>
  )
}

/** Requests of a list for numbers that run at once: the page has others. */
const CONCURRENT_MAX = 4

/** Loads the numbers of a name, which may follow earlier ones. */
export type LoadNumbers = (name: string, before: Numbers | undefined, signal: AbortSignal) => Promise<Numbers>

/** The numbers of the names that are in view, a few at a time, and again while the page is visible. */
export function useListNumbers(load: LoadNumbers | undefined) {
  const [, render] = useReducer((count: number) => count + 1, 0)
  const { values, visible, waiting, abort } = useRef({
    values: new Map<string, Numbers>(),
    visible: new Set<string>(),
    waiting: new Set<string>(),
    abort: new AbortController(),
  }).current
  const running = useRef(0)
  const loadWaiting = async () => {
    if (load === undefined || running.current === CONCURRENT_MAX) return
    running.current++
    for (const name of waiting) {
      waiting.delete(name)
      const numbers = await known(load(name, values.get(name), abort.signal))
      if (abort.signal.aborted) return
      if (numbers !== undefined) values.set(name, numbers)
      render(undefined)
    }
    running.current--
  }
  const request = (names: Iterable<string>) => {
    for (const name of names) {
      waiting.add(name)
      void loadWaiting()
    }
  }
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden && waiting.size === 0) request(visible)
    }, INTERVAL_MS)
    return () => {
      clearInterval(timer)
      abort.abort()
    }
  }, [])
  return {
    values: values as ReadonlyMap<string, Numbers>,
    /** Loads the numbers of these names if they are not known, whether they are in view or not. */
    request: (names: readonly string[]) => request(names.filter((name) => !values.has(name))),
    /** Tells whether a name is in view. */
    show(name: string, isVisible: boolean) {
      if (!isVisible) visible.delete(name)
      else {
        visible.add(name)
        if (!values.has(name)) request([name])
      }
    },
  }
}
