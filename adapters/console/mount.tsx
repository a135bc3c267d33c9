/// <reference path="./assets.d.ts" />

import { render } from 'preact'
import { Credentials } from './access.ts'
import { App } from './app.tsx'
import { Connection } from './connection.ts'
import { assertConsoleOptions, type ConsoleOptions, NO_ADDRESS } from './options.ts'
import baseStyles from './styles/base.css?text'
import controlStyles from './styles/controls.css?text'
import formStyles from './styles/forms.css?text'
import partStyles from './styles/parts.css?text'
import viewStyles from './styles/views.css?text'

/** Shows the console inside an element, and returns a function that removes it. */
export function mountConsole(element: Element, options: ConsoleOptions): () => void {
  assertConsoleOptions(options)
  return mount(element, options, false)
}

/**
 * Mounts like {@link mountConsole}. A console that owns its page keeps the current view in the fragment of
 * the URL.
 */
export function mount(
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
  root.adoptedStyleSheets = [baseStyles, controlStyles, partStyles, formStyles, viewStyles].map(styleSheet)
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
