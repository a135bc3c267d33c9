import { encodeBase64, utf8 } from '../../../src/model/bytes.ts'
import type { HtmlPage } from '../options.ts'
import type { Endpoint } from '../request.ts'

const HEADERS = {
  'cache-control': 'no-cache',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** The endpoints of a page, whose name is empty, and of its scripts. */
export function servePage({ html, contentSecurityPolicy, scripts = {} }: HtmlPage): Map<string, Endpoint> {
  const policy = { 'content-security-policy': contentSecurityPolicy }
  const endpoints = new Map([['', serveText(async () => html, 'text/html; charset=utf-8', policy)]])
  for (const [name, load] of Object.entries(scripts)) {
    endpoints.set(name, serveText(load, 'text/javascript; charset=utf-8'))
  }
  return endpoints
}

/**
 * Serves a text that does not change. A browser that has it asks whether it changed (`if-none-match`), and
 * then gets 304 without the text.
 */
function serveText(
  load: () => Promise<string>,
  contentType: string,
  more?: Readonly<Record<string, string>>,
): Endpoint {
  let loaded: Promise<{ readonly text: string; readonly etag: string }> | undefined
  return async ({ exchange }) => {
    loaded ??= load().then(async (text) => ({ text, etag: await etagOf(text) }))
    loaded.catch(() => {
      loaded = undefined
    })
    const { text, etag } = await loaded
    const headers = { ...HEADERS, ...more, etag }
    const known = exchange
      .header('if-none-match')
      ?.split(',')
      .map((one) => one.trim())
    if (known?.includes(etag)) return { status: 304, headers }
    return { status: 200, headers: { ...headers, 'content-type': contentType }, body: text }
  }
}

/** A weak tag: the body may be compressed. */
async function etagOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', utf8(text) as Uint8Array<ArrayBuffer>)
  return `W/"${encodeBase64(new Uint8Array(hash))}"`
}
