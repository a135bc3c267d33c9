/// <reference path="./assets.d.ts" />
import { render } from 'preact'
import chartStyles from 'uplot/dist/uPlot.min.css?text'
import { Client } from './api/client.ts'
import { Credentials } from './api/credentials.ts'
import { App } from './app.tsx'
import { assertConsoleOptions, type ConsoleOptions } from './options.ts'
import baseStyles from './styles/base.css?text'
import chartPartStyles from './styles/charts.css?text'
import formStyles from './styles/forms.css?text'
import narrowStyles from './styles/narrow.css?text'
import partStyles from './styles/parts.css?text'
import recordStyles from './styles/records.css?text'

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
  const parts = [partStyles, formStyles, chartPartStyles, narrowStyles, recordStyles]
  root.adoptedStyleSheets = [chartStyles, baseStyles, ...parts].map(styleSheet)
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
