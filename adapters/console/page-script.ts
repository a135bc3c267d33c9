import { mount } from './mount.tsx'

const sheet = new CSSStyleSheet()
sheet.replaceSync('html,body{height:100%;margin:0}')
document.adoptedStyleSheets = [sheet]

const url = new URL('.', location.href)
mount(
  document.body,
  { fetch: (request) => fetch(request), url: `${url.origin}${url.pathname}`.replace(/\/$/, '') },
  true,
)
