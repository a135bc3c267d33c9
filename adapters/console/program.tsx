/// <reference path="./assets.d.ts" />

import { render } from 'preact'
import chartStyles from 'uplot/dist/uPlot.min.css?inline'
import { Credentials } from './access.tsx'
import { App } from './app.tsx'
import { Connection } from './connection.ts'
import { assertConsoleOptions, type ConsoleOptions, NO_ADDRESS } from './options.ts'
import baseStyles from './styles/base.css?inline'
import controlStyles from './styles/controls.css?inline'
import formStyles from './styles/forms.css?inline'
import partStyles from './styles/parts.css?inline'
import viewStyles from './styles/views.css?inline'

/** Shows the console as the whole page, for the server that the page came from. */
export function showPage(): void {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('html,body{height:100%;margin:0}')
  document.adoptedStyleSheets = [sheet]

  const { origin, pathname } = new URL('.', location.href)
  const url = `${origin}${pathname}`.replace(/\/$/, '')
  const credentials = new Credentials(url)
  const show = () => mount(document.body, { fetch: (request) => fetch(request), url }, true, credentials)
  const [, code] = /^#code=(.+)$/.exec(location.hash) ?? []
  if (code === undefined) show()
  // Without a token, the page asks for one.
  else signIn(url, code, credentials).then(show, show)
}

/** Exchanges the code of the link that a server prints, which signs in once. */
async function signIn(url: string, code: string, credentials: Credentials): Promise<void> {
  history.replaceState(null, '', location.pathname)
  const headers = { authorization: `Bearer ${code}` }
  const response = await fetch(`${url}/sign-in`, { method: 'POST', headers })
  if (response.ok) credentials.save((await response.json()).access_token, 'tab')
  else credentials.isCodeRejected = true
}

/**
 * Shows the console inside an element, and returns a function that removes it. Its styles and those of the
 * page do not affect each other. Throws `invalid` for invalid options.
 */
export function mountConsole(element: Element, options: ConsoleOptions): () => void {
  assertConsoleOptions(options)
  return mount(element, options, false)
}

/**
 * Mounts like {@link mountConsole}. A console that owns its page keeps the current view in the fragment of
 * the URL.
 */
function mount(
  element: Element,
  options: ConsoleOptions,
  ownsPage: boolean,
  credentials = new Credentials(options.url ?? 'in-process'),
): () => void {
  const { url, basinUrl, headerPrefix = 'svc', theme = 'system' } = options
  const target = { url: url ?? NO_ADDRESS, basinUrl, headerPrefix }
  const connect = (token?: string) => new Connection(options.fetch, target, token)
  const host = document.createElement('div')
  host.style.height = '100%'
  const root = host.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [chartStyles, baseStyles, controlStyles, partStyles, formStyles, viewStyles].map(
    styleSheet,
  )
  element.append(host)
  render(
    <App
      connect={connect}
      credentials={credentials}
      hasAddress={url !== undefined}
      ownsPage={ownsPage}
      theme={theme}
    />,
    root,
  )
  return () => {
    render(null, root)
    host.remove()
  }
}

function styleSheet(text: string): CSSStyleSheet {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync(text)
  return sheet
}
