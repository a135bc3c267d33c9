import { render } from 'preact'
import chartStyles from 'uplot/dist/uPlot.min.css?inline'
import { invalid } from '../../src/model/errors.ts'
import { assertOptions, assertText, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { HEADER_PREFIXES, type HeaderPrefix } from '../../src/wire/headers.ts'
import { settingsOf } from '../client/options.ts'
import { Credentials } from './access.tsx'
import { App } from './app.tsx'
import { Connection } from './connection.ts'
import baseStyles from './styles/base.css?inline'
import controlStyles from './styles/controls.css?inline'
import formStyles from './styles/forms.css?inline'
import partStyles from './styles/parts.css?inline'
import viewStyles from './styles/views.css?inline'

/// <reference path="./assets.d.ts" />

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
 *
 * @internal
 */
export function mount(
  element: Element,
  options: ConsoleOptions,
  ownsPage: boolean,
  credentials = new Credentials(options.url ?? 'in-process'),
): () => void {
  const { url, headerPrefix = 'svc', theme = 'system' } = options
  const target = { url: (url ?? NO_ADDRESS).replace(/\/+$/, ''), headerPrefix }
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

/** Options of the console. */
export interface ConsoleOptions {
  /**
   * Sends a request: `createHandler(hw, { auth: 'none' })` for an engine in this page, `fetch` for a server,
   * or any function of that shape.
   */
  readonly fetch: (request: Request) => Promise<Response>
  /**
   * The address of the server, such as `https://streams.example`. None by default, for an engine in this
   * page, and no curl commands are offered.
   */
  readonly url?: string | undefined
  /** The prefix of protocol headers: `s2` for the hosted service. Default `svc`. */
  readonly headerPrefix?: HeaderPrefix | undefined
  /** The colours. Default `system`: those of the browser. */
  readonly theme?: 'system' | 'light' | 'dark' | undefined
}

const OPTIONS: MembersOf<ConsoleOptions> = {
  fetch: 'function',
  url: assertText,
  headerPrefix: oneOf(HEADER_PREFIXES),
  theme: oneOf(['system', 'light', 'dark']),
}

/** The URL of an engine in this page: a request needs one, though no server has it. */
const NO_ADDRESS = 'http://localhost'

/** Throws `invalid` for invalid options. */
function assertConsoleOptions(options: ConsoleOptions): void {
  assertOptions(options, OPTIONS)
  const { fetch, url = NO_ADDRESS } = options
  if (fetch === undefined) throw invalid('`fetch` is required, such as `createHandler(hw)`', 'fetch')
  settingsOf({ url })
}
