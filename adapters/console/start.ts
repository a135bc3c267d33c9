import { Credentials } from './access.tsx'
import { mount } from './mount.tsx'

/** Shows the console as the whole page, for the server that the page came from. */
function showPage(): void {
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
  if (response.ok) credentials.save((await response.json()).access_token, 'sessionStorage')
  else credentials.isCodeRejected = true
}

showPage()
