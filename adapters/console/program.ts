import { mount } from './mount.tsx'

export { mountConsole } from './mount.tsx'

/** Shows the console as the whole page, for the server that the page came from. */
export function showPage(): void {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('html,body{height:100%;margin:0}')
  document.adoptedStyleSheets = [sheet]

  const url = new URL('.', location.href)
  mount(
    document.body,
    { fetch: (request) => fetch(request), url: `${url.origin}${url.pathname}`.replace(/\/$/, '') },
    true,
  )
}
