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
      /** The content of its records tab: see `RecordsPlace`. */
      readonly place?: string | undefined
    }

/** The parts of a basin's view. */
const BASIN_TABS = ['streams', 'configuration', 'followers', 'usage'] as const
type BasinTab = (typeof BASIN_TABS)[number]

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
