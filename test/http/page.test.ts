import { gunzipSync } from 'node:zlib'
import { expect, test, vi } from 'vitest'
import { createHandler, type HtmlPage } from '../../adapters/http/index.ts'
import { bytesOf, startService } from './support.ts'

const PAGE: HtmlPage = {
  html: '<!doctype html><title>ü</title>',
  contentSecurityPolicy: "default-src 'none'",
}

test('the page is served at `/`, without a token and with its content security policy', async () => {
  const { with: withOptions } = await startService()
  const call = withOptions({ auth: 'token', page: PAGE })
  const response = await call('GET', '/', { basin: null })
  expect([response.status, await response.text()]).toEqual([200, PAGE.html])
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': PAGE.contentSecurityPolicy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  })
  const head = await call('HEAD', '/', { basin: null })
  expect([head.status, await head.text(), head.headers.get('content-type')]).toEqual([
    200,
    '',
    'text/html; charset=utf-8',
  ])
  expect((await call('POST', '/', { basin: null })).headers.get('allow')).toBe('GET, HEAD')
  expect((await call('GET', '/v1/basins', { basin: null })).status).toBe(401)
})

test('the page is sent again only after it has changed', async () => {
  const { with: withOptions } = await startService()
  const call = withOptions({ page: PAGE })
  const etag = (await call('GET', '/', { basin: null })).headers.get('etag')!
  expect(etag).toMatch(/^W\/"[\w+/]{43}="$/)
  const revalidate = (etag: string, page = PAGE) =>
    withOptions({ page })('GET', '/', { basin: null, headers: { 'if-none-match': etag } })
  for (const known of [etag, `"other", ${etag}`]) {
    const { status, headers, body } = await revalidate(known)
    expect([status, headers.get('etag'), body]).toEqual([304, etag, null])
    expect(headers.get('content-security-policy')).toBe(PAGE.contentSecurityPolicy)
  }
  expect((await revalidate('"other"')).status).toBe(200)
  expect((await revalidate(etag, { ...PAGE, html: '<!doctype html><title>new</title>' })).status).toBe(200)
})

test('a page is compressed', async () => {
  const page = { ...PAGE, html: `<!doctype html>${'<p>text</p>'.repeat(1000)}` }
  const { call } = await startService({ page })
  const headers = { 'accept-encoding': 'gzip' }
  const response = await call('GET', '/', { basin: null, headers })
  expect(response.headers.get('content-encoding')).toBe('gzip')
  expect(response.headers.get('vary')).toBe('accept-encoding')
  expect(gunzipSync(await bytesOf(response)).toString()).toBe(page.html)
})

test('the scripts of a page are beside it, and loaded when they are first requested', async () => {
  const { with: withOptions } = await startService()
  const load = vi.fn(async () => 'run()')
  const call = withOptions({ page: { ...PAGE, scripts: { 'app.js': load } } })
  await call('GET', '/', { basin: null })
  expect(load).not.toHaveBeenCalled()
  for (const _ of [1, 2]) {
    const response = await call('GET', '/app.js', { basin: null })
    expect([await response.text(), response.headers.get('content-type')]).toEqual([
      'run()',
      'text/javascript; charset=utf-8',
    ])
  }
  expect(load).toHaveBeenCalledTimes(1)
  expect((await call('GET', '/other.js', { basin: null })).status).toBe(404)
})

test.each(['/', '/streams', '/streams/'])('the page is served after a prefix: %s', async (path) => {
  const { call } = await startService({ prefix: '/streams', page: PAGE })
  expect((await call('GET', path)).headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect((await call('GET', '/streamsx')).status).toBe(404)
})

test.each([
  [{ html: '' }, '`page.contentSecurityPolicy` must be a string'],
  [{ contentSecurityPolicy: '' }, '`page.html` must be a string'],
  [
    { ...PAGE, links: {} },
    'unknown member `page.links`; expected `html`, `contentSecurityPolicy`, `scripts`',
  ],
  [{ ...PAGE, scripts: { 'app.js': '1' } }, '`page.scripts.app.js` must be a function'],
  ['<!doctype html>', '`page` must be a plain object'],
])('rejects %j as a page', async (page, message) => {
  const { hw } = await startService()
  expect(() => createHandler(hw, { page: page as HtmlPage })).toThrow(
    expect.objectContaining({ code: 'invalid', message }),
  )
})
