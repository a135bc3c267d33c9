import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import { type Credentials, readStored, TokenForm, useAccess, writeStored } from './access.tsx'
import { BasinList, BasinView } from './basins.tsx'
import type { Connection } from './connection.ts'
import { type Console, ConsoleContext } from './context.ts'
import { type ConsoleRoute, fragmentOf, routeOf, titleOf } from './route.ts'
import { Shortcuts } from './shortcuts.tsx'
import { StreamPage } from './stream/stream-page.tsx'
import { TokenList } from './tokens/token-list.tsx'
import { Button, Link } from './ui/elements.tsx'
import { Select } from './ui/fields.tsx'
import { Throughput, Usage } from './usage/usage.tsx'

const ANNOUNCEMENT_MS = 4000

/** The views of the header, with their shortcuts. */
const VIEWS = [
  ['basins', 'Basins', 'g b'],
  ['tokens', 'Access tokens', 'g t'],
  ['usage', 'Usage', 'g u'],
] as const

const THEMES = [
  ['system', 'Auto'],
  ['light', 'Light'],
  ['dark', 'Dark'],
] as const
type Theme = (typeof THEMES)[number][0]

export function App(props: {
  readonly connect: (token?: string) => Connection
  readonly credentials: Credentials
  readonly hasAddress: boolean
  readonly ownsPage: boolean
  readonly theme: Theme
}) {
  const { connect, credentials, hasAddress, ownsPage } = props
  const [theme, setTheme] = useTheme(props.theme, ownsPage)
  const { route, visit, navigate, replaceRoute } = useRoute(ownsPage)
  const [announcement, announce] = useAnnouncement()
  const root = useRef<HTMLDivElement>(null)
  const { access, session, connection, loss, useToken, forgetToken } = useAccess(connect, credentials)
  const [protobufTypes, setProtobufTypes] = useState<Console['protobufTypes']>()
  const value: Console = {
    ...{ connection, hasAddress, navigate, replaceRoute, announce, protobufTypes, setProtobufTypes, loss },
  }

  const currentView = 'basin' in route ? 'basins' : route.view
  const needsToken = access === 'missing' || access === 'rejected'
  useNavigationFocus(root, `${fragmentOf(route).replace(/\?.*/s, '')} ${needsToken}`)
  useEffect(() => {
    if (ownsPage) document.title = `${titleOf(route)} – headwater`
  }, [ownsPage, route])
  // The page of an app has landmarks of its own.
  const Main = ownsPage ? 'main' : 'section'
  return (
    <ConsoleContext.Provider value={value}>
      <div ref={root} class="console" data-theme={theme}>
        <header class="bar">
          <span class="brand">headwater</span>
          <nav aria-label="Console">
            {VIEWS.map(([view, title, shortcut]) => (
              <Link key={view} to={{ view }} current={view === currentView} shortcut={shortcut}>
                {title}
              </Link>
            ))}
          </nav>
          <span class="spacer" />
          <span class="server">
            {hasAddress ? connection.target.url.replace(/^https?:\/\//, '') : 'in this page'}
          </span>
          {access === 'open' && hasAddress && (
            <span class="tag" title="The server takes requests without an access token">
              no token needed
            </span>
          )}
          {connection.isAuthorized && (
            <Button class="quiet" onClick={forgetToken}>
              Forget token
            </Button>
          )}
          <Select label="Colours" value={theme} options={THEMES} onChange={setTheme} />
          <Shortcuts root={() => root.current!} ownsPage={ownsPage} />
        </header>
        {loss && (
          <p class="notice bad" role="alert">
            Connection lost: {loss.message}. Trying again …
          </p>
        )}
        {/* A new token remounts every view. */}
        <Main key={session} class="content" aria-label={ownsPage ? undefined : 'Console'}>
          {needsToken ? (
            <TokenForm isRejected={access === 'rejected'} onToken={useToken} />
          ) : (
            <View route={route} visit={visit} />
          )}
        </Main>
        <div class="announcement" role="status">
          {announcement !== '' && <span>{announcement}</span>}
        </div>
      </div>
    </ConsoleContext.Provider>
  )
}

function View({ route, visit }: { readonly route: ConsoleRoute; readonly visit: number }) {
  switch (route.view) {
    case 'basins':
      return <BasinList />
    case 'basin':
      return <BasinView key={route.basin} route={route} />
    case 'stream': {
      const { basin, stream } = route
      return <StreamPage key={`${basin}/${stream}`} route={route} visit={visit} />
    }
    case 'tokens':
      return <TokenList />
    case 'usage':
      return (
        <>
          <h1 tabIndex={-1}>Usage</h1>
          <Throughput />
          <Usage of={{}} />
        </>
      )
  }
}

/** The route, in the fragment of the page's URL or in memory, and how often it was navigated to. */
function useRoute(inFragment: boolean) {
  const [{ route, visit }, setState] = useState(() => ({
    route: routeOf(inFragment ? location.hash : ''),
    visit: 0,
  }))
  const show = (next: ConsoleRoute, isVisit = true) =>
    setState((before) => ({ route: next, visit: before.visit + Number(isVisit) }))
  // Not `useEffect`, which runs after a frame: a fragment that changes before it would not be seen.
  useLayoutEffect(() => {
    if (!inFragment) return
    const update = () => show(routeOf(location.hash))
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [inFragment])
  return {
    route,
    visit,
    navigate(next: ConsoleRoute) {
      if (inFragment) location.hash = fragmentOf(next)
      else show(next)
    },
    replaceRoute(next: ConsoleRoute) {
      if (inFragment) history.replaceState(null, '', fragmentOf(next))
      show(next, false)
    },
  }
}

const THEME_KEY = 'headwater-console-theme'

/** The colours; a console that owns its page remembers the choice. */
function useTheme(initial: Theme, isRemembered: boolean): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState(() => {
    const remembered = isRemembered ? readStored('localStorage', THEME_KEY) : undefined
    return THEMES.find(([one]) => one === remembered)?.[0] ?? initial
  })
  return [
    theme,
    (next) => {
      setTheme(next)
      if (isRemembered) writeStored('localStorage', THEME_KEY, next)
    },
  ]
}

/** Moves the focus to the heading of a new view if what had it has gone with the old one. */
function useNavigationFocus(root: { readonly current: HTMLElement | null }, view: string): void {
  const isFirst = useRef(true)
  useEffect(() => {
    const wasFirst = isFirst.current
    isFirst.current = false
    if (wasFirst || (root.current!.getRootNode() as ShadowRoot).activeElement !== null) return
    root.current!.querySelector('h1')?.focus({ preventScroll: true })
  }, [view])
}

function useAnnouncement(): [string, (message: string) => void] {
  const [message, setMessage] = useState('')
  useEffect(() => {
    if (message === '') return
    const timer = setTimeout(() => setMessage(''), ANNOUNCEMENT_MS)
    return () => clearTimeout(timer)
  }, [message])
  return [message, setMessage]
}
