import { Credentials } from './access.ts'
import { mount } from './mount.tsx'

export { mountConsole } from './mount.tsx'

/** Shows the console as the whole page, for the server that the page came from. */
export function showPage(): void {
  const sheet = new CSSStyleSheet()
  sheet.replaceSync('html,body{height:100%;margin:0}')
  document.adoptedStyleSheets = [sheet]

  const { origin, pathname } = new URL('.', location.href)
  const url = `${origin}${pathname}`.replace(/\/$/, '')
  const [, token] = /^#token=(.+)$/.exec(location.hash) ?? []
  if (token !== undefined) {
    // The link that a server prints signs in once: neither the address nor the history keeps the token.
    history.replaceState(null, '', location.pathname)
    new Credentials(url).save(decodeURIComponent(token), 'tab')
  }
  mount(document.body, { fetch: (request) => fetch(request), url }, true)
}
