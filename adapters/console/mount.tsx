/// <reference path="./assets.d.ts" />
import { render } from 'preact'
import chartStyles from 'uplot/dist/uPlot.min.css?text'
import { assertOptions, assertText, type MembersOf, oneOf } from '../../src/model/validation.ts'
import { Credentials } from './access.ts'
import { Client } from './api/client.ts'
import { App } from './app.tsx'
import baseStyles from './styles/base.css?text'
import controlStyles from './styles/controls.css?text'
import formStyles from './styles/forms.css?text'
import partStyles from './styles/parts.css?text'
import viewStyles from './styles/views.css?text'

/** Options of the console. */
export interface ConsoleOptions {
  /**
   * Sends a request: `createHandler(hw, { auth: 'none' })` for an engine in this page, `fetch` for a server,
   * or any function of that shape.
   */
  readonly fetch: (request: Request) => Promise<Response>
  /**
   * The address of the server, such as `https://streams.example`. Default: none, for an engine in this page,
   * and no curl commands are offered.
   */
  readonly url?: string
  /**
   * The address of the server's basins if each has a host of its own, such as `https://{basin}.example`.
   * Default: `url`, with the basin in a header.
   */
  readonly basinUrl?: string
  /** The prefix of protocol headers: `svc` or `s2`. Default `svc`. */
  readonly headerPrefix?: string
  /** The colours. Default `system`: those of the browser. */
  readonly theme?: 'system' | 'light' | 'dark'
}

const OPTIONS: MembersOf<ConsoleOptions> = {
  fetch: 'function',
  url: assertText,
  basinUrl: assertText,
  headerPrefix: assertText,
  theme: oneOf(['system', 'light', 'dark']),
}

/** Throws `RangeError` for invalid options. */
function assertConsoleOptions(options: ConsoleOptions): void {
  assertOptions(options, OPTIONS)
  if (options.fetch === undefined) throw new RangeError('`fetch` is required, such as `createHandler(hw)`')
  for (const name of ['url', 'basinUrl'] as const) {
    const value = options[name]?.replace('{basin}', 'basin')
    if (value !== undefined && !/^https?:$/.test(URL.canParse(value) ? new URL(value).protocol : '')) {
      throw new RangeError(`\`${name}\` must be an http or https URL, not ${JSON.stringify(options[name])}`)
    }
  }
  if (options.headerPrefix !== undefined && !/^[a-z0-9]+$/.test(options.headerPrefix)) {
    throw new RangeError('`headerPrefix` must be lower-case letters and digits')
  }
}

/**
 * Shows the console inside an element, and returns a function that removes it. Its styles and those of the
 * page do not affect each other. Throws `RangeError` for invalid options.
 */
export function mountConsole(element: Element, options: ConsoleOptions): () => void {
  assertConsoleOptions(options)
  return mount(element, options, false)
}

/**
 * As {@link mountConsole}. A console that owns its page keeps the current view in the fragment of the URL.
 */
export function mount(element: Element, options: ConsoleOptions, ownsPage: boolean): () => void {
  const { url, basinUrl, headerPrefix = 'svc', theme = 'system' } = options
  // A request needs an absolute URL, though no server has this one.
  const client = new Client(options.fetch, { url: url ?? 'http://localhost', basinUrl, headerPrefix })
  const credentials = new Credentials(url ?? 'in-process')
  const host = document.createElement('div')
  host.style.height = '100%'
  const root = host.attachShadow({ mode: 'open' })
  root.adoptedStyleSheets = [chartStyles, baseStyles, controlStyles, partStyles, formStyles, viewStyles].map(
    styleSheet,
  )
  element.append(host)
  render(
    <App
      client={client}
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
