import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks'
import { useAccess } from './access.ts'
import type { Client } from './api/client.ts'
import type { Credentials } from './api/credentials.ts'
import { type Console, ConsoleContext } from './context.ts'
import { Header } from './header.tsx'
import { fragmentOf, type Route, routeOf } from './route.ts'
import { shortcutListener } from './shortcuts.ts'
import { TokenForm } from './token-form.tsx'
import { View } from './view.tsx'

const ANNOUNCEMENT_MS = 4000

export function App(props: {
  readonly client: Client
  readonly credentials: Credentials
  readonly hasAddress: boolean
  readonly ownsPage: boolean
  readonly theme: 'system' | 'light' | 'dark'
}) {
  const { client, credentials, hasAddress, ownsPage } = props
  const [theme, setTheme] = useState(props.theme)
  const [route, navigate] = useRoute(ownsPage)
  const [announcement, announce] = useAnnouncement()
  const [hasShortcuts, setShortcuts] = useState(true)
  const root = useRef<HTMLDivElement>(null)
  const { access, session, useToken, forgetToken } = useAccess(client, credentials)
  const encryptionKeys = useMemo(() => new Map<string, string>(), [])
  const value: Console = useMemo(
    () => ({ client, hasAddress, navigate, announce, encryptionKeys }),
    [client, hasAddress, navigate, announce, encryptionKeys],
  )

  // Not `useEffect`, after which a key that follows at once would still count.
  useLayoutEffect(() => {
    if (!hasShortcuts) return
    const target = ownsPage ? document : root.current!
    const listener = shortcutListener(() => root.current!) as EventListener
    target.addEventListener('keydown', listener)
    return () => target.removeEventListener('keydown', listener)
  }, [ownsPage, hasShortcuts])

  const needsToken = access === 'missing' || access === 'rejected'
  return (
    <ConsoleContext.Provider value={value}>
      <div ref={root} class="console" data-theme={theme}>
        <Header
          route={route}
          access={access}
          theme={theme}
          onTheme={setTheme}
          hasShortcuts={hasShortcuts}
          onShortcuts={setShortcuts}
          onForget={() => {
            encryptionKeys.clear()
            forgetToken()
          }}
        />
        {/* A new token starts every view anew. */}
        <main key={session}>
          {needsToken ? (
            <TokenForm isRejected={access === 'rejected'} onToken={useToken} />
          ) : (
            <View route={route} />
          )}
        </main>
        <div class="announcement" role="status">
          {announcement}
        </div>
      </div>
    </ConsoleContext.Provider>
  )
}

/** The route, in the fragment of the page's URL or in memory. */
function useRoute(inFragment: boolean): [Route, (route: Route) => void] {
  const [route, setRoute] = useState<Route>(() => routeOf(inFragment ? location.hash : ''))
  useEffect(() => {
    if (!inFragment) return
    const update = () => setRoute(routeOf(location.hash))
    addEventListener('hashchange', update)
    return () => removeEventListener('hashchange', update)
  }, [inFragment])
  const navigate = useMemo(
    () => (next: Route) => {
      if (inFragment) location.hash = fragmentOf(next)
      else setRoute(next)
    },
    [inFragment],
  )
  return [route, navigate]
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
