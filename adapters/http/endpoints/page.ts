import { utf8 } from '../../../src/model/bytes.ts'
import { encodeBase64 } from '../../../src/wire/base64.ts'
import type { HtmlPage } from '../options.ts'
import type { Reply } from '../reply.ts'
import type { Endpoint } from '../request.ts'

/**
 * Serves a page. A browser that has it asks whether it changed (`if-none-match`), and then gets 304 without
 * the page.
 */
export function servePage({ html, contentSecurityPolicy }: HtmlPage): Endpoint {
  const headers = {
    'content-security-policy': contentSecurityPolicy,
    'cache-control': 'no-cache',
    'referrer-policy': 'no-referrer',
    'x-content-type-options': 'nosniff',
  }
  const encodings: Reply['encodings'] = new Map()
  let etag: Promise<string> | undefined
  return async ({ exchange }) => {
    etag ??= etagOf(html)
    const tag = await etag
    const known = exchange
      .header('if-none-match')
      ?.split(',')
      .map((one) => one.trim())
    if (known?.includes(tag)) return { status: 304, headers: { ...headers, etag: tag } }
    return {
      status: 200,
      headers: { ...headers, etag: tag, 'content-type': 'text/html; charset=utf-8' },
      body: html,
      encodings,
    }
  }
}

/** A weak tag: the body may be compressed. */
async function etagOf(html: string): Promise<string> {
  const hash = await crypto.subtle.digest('SHA-256', utf8(html) as Uint8Array<ArrayBuffer>)
  return `W/"${encodeBase64(new Uint8Array(hash))}"`
}
