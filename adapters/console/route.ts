import type { Format } from './stream/body.ts'
import type { Start } from './stream/pager.ts'

/** The view that the console shows. */
export type ConsoleRoute =
  | { readonly view: 'basins' }
  | { readonly view: 'tokens' }
  | { readonly view: 'usage' }
  | { readonly view: 'basin'; readonly basin: string; readonly tab: BasinTab }
  | {
      readonly view: 'stream'
      readonly basin: string
      readonly stream: string
      readonly tab: StreamTab
      /** The content of its records tab: see {@link placeText}. */
      readonly place?: string | undefined
    }

/** The parts of a basin's view. */
const BASIN_TABS = ['streams', 'configuration', 'followers', 'usage'] as const
export type BasinTab = (typeof BASIN_TABS)[number]

/** The parts of a stream's view. */
const STREAM_TABS = ['records', 'append', 'fence-and-trim', 'configuration', 'followers', 'usage'] as const
type StreamTab = (typeof STREAM_TABS)[number]

/** The fragment of a route: `#/basins/shop/streams/orders%2F1/append`. */
export function fragmentOf(route: ConsoleRoute): string {
  if (route.view === 'basins' || route.view === 'tokens' || route.view === 'usage') return `#/${route.view}`
  const basin = `#/basins/${encodeURIComponent(route.basin)}`
  if (route.view === 'basin') return route.tab === 'streams' ? basin : `${basin}/${route.tab}`
  const stream = `${basin}/streams/${encodeURIComponent(route.stream)}`
  const place = route.place ? `?${route.place}` : ''
  return route.tab === 'records' ? `${stream}${place}` : `${stream}/${route.tab}`
}

/** Returns the title of the page for a route. */
export function titleOf(route: ConsoleRoute): string {
  if (route.view === 'basin') return route.basin
  if (route.view === 'stream') return `${route.stream} · ${route.basin}`
  return { basins: 'Basins', tokens: 'Access tokens', usage: 'Usage' }[route.view]
}

/** The route of a fragment; the list of basins if it is not one. */
export function routeOf(fragment: string): ConsoleRoute {
  const [path, place] = fragment.split(/\?(.*)/s)
  const [view, basin, second = 'streams', stream, tab = 'records'] = segmentsOf(path!)
  if (view === 'tokens' || view === 'usage') return { view }
  if (view !== 'basins' || basin === undefined || basin === '') return { view: 'basins' }
  if (second === 'streams' && stream !== undefined && stream !== '') {
    return { view: 'stream', basin, stream, tab: oneOf(STREAM_TABS, tab), ...(place && { place }) }
  }
  return { view: 'basin', basin, tab: oneOf(BASIN_TABS, second) }
}

function segmentsOf(fragment: string): string[] {
  try {
    return fragment
      .replace(/^#?\/?/, '')
      .split('/')
      .map(decodeURIComponent)
  } catch {
    return []
  }
}

function oneOf<Value extends string>(values: readonly [Value, ...Value[]], text: string): Value {
  return values.find((value) => value === text) ?? values[0]
}

/** The content of the records tab of a stream, as its address stores it. */
export interface RecordsPlace {
  /** The first record in view; undefined at the tail. */
  readonly from?: Start | undefined
  /** The record that is open. */
  readonly record?: number | undefined
  readonly filter?: string | undefined
  /** Paths of JSON and names of headers that are shown in columns, separated by spaces. */
  readonly columns?: string | undefined
  readonly format?: Format | undefined
  /** The message type of protobuf whose records state none. */
  readonly type?: string | undefined
}

/** The formats of bodies that can be chosen. */
export const FORMATS: readonly (readonly [Format, string])[] = [
  ['auto', 'JSON or text'],
  ['text', 'Text'],
  ['hex', 'Hex'],
  ['protobuf', 'Protobuf'],
]

/** The records tab without a choice. */
export const AT_TAIL: Start = { tailOffset: 100 }

/** A place as the query of a fragment: `from=12&q=a%3Db&columns=.id`; empty for the tail. */
export function placeText({ from, record, filter, columns, format, type }: RecordsPlace): string {
  const text = new URLSearchParams()
  if (from !== undefined && from !== AT_TAIL) text.set('from', startText(from))
  if (record !== undefined) text.set('record', String(record))
  if (filter) text.set('q', filter)
  if (columns) text.set('columns', columns)
  if (format !== undefined && format !== 'auto') text.set('as', format)
  if (type) text.set('type', type)
  return text.toString()
}

/** The place of a text; what is not valid in it counts as absent. */
export function placeOf(text = ''): RecordsPlace {
  const parts = new URLSearchParams(text)
  const format = parts.get('as')
  return {
    from: startOf(parts.get('from') ?? ''),
    record: integerOf(parts.get('record') ?? ''),
    filter: parts.get('q') ?? '',
    columns: parts.get('columns') ?? '',
    format: FORMATS.find(([one]) => one === format)?.[0] ?? 'auto',
    type: parts.get('type') ?? '',
  }
}

/** A start as text: a sequence number, `-100` before the tail, or `t` and milliseconds. */
function startText({ seqNum, timestamp, tailOffset }: Start): string {
  if (seqNum !== undefined) return String(seqNum)
  return tailOffset === undefined ? `t${Number(timestamp)}` : `-${tailOffset}`
}

function startOf(text: string): Start | undefined {
  const value = integerOf(text.replace(/^[-t]/, ''))
  if (value === undefined) return undefined
  if (text[0] === 't') return { timestamp: value }
  return text[0] === '-' ? { tailOffset: value } : { seqNum: value }
}

function integerOf(text: string): number | undefined {
  const value = Number(text)
  return /^\d+$/.test(text) && Number.isSafeInteger(value) ? value : undefined
}
