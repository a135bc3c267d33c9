import { encodeBase64, utf8 } from '../../../src/model/bytes.ts'
import type { HtmlPage } from '../options.ts'
import type { Endpoint, Methods } from '../request.ts'
import type { Route } from '../router.ts'

const HEADERS = {
  'cache-control': 'no-cache',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/** Serves a page at the path where the handler is mounted, and its scripts beside it. */
export function pageRoutes({ html, contentSecurityPolicy, scripts = {} }: HtmlPage): Route<Methods>[] {
  const policy = { 'content-security-policy': contentSecurityPolicy }
  const route = (name: string, endpoint: Endpoint): Route<Methods> => ({
    pattern: `/${name}`,
    target: { GET: { endpoint, operations: 'public' } },
  })
  return [
    route(
      '',
      serveText(async () => html, 'text/html; charset=utf-8', policy),
    ),
    ...Object.entries(scripts).map(([name, load]) =>
      route(name, serveText(load, 'text/javascript; charset=utf-8')),
    ),
  ]
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
    const known = exchange.header('if-none-match')?.split(/ *, */)
    if (known?.includes(etag)) return { status: 304, headers }
    return { status: 200, headers: { ...headers, 'content-type': contentType }, body: text }
  }
}

/** A weak tag: the body may be compressed. */
async function etagOf(text: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', utf8(text) as Uint8Array<ArrayBuffer>)
  return `W/"${encodeBase64(new Uint8Array(hash))}"`
}
