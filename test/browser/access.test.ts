// @module-tag slow

import { describe, expect, it } from 'vitest'
import type { Variant } from './bundle.ts'
import type * as Access from './pages/access.ts'
import { inChromium, scriptIn } from './support.ts'

/** The name of a host that is not local, so that its pages are no secure contexts. */
const INSECURE_HOST = 'insecure.test'
const NO_TOKENS = '503 unsupported: access tokens need WebCrypto, which insecure pages lack: use https'
const NO_CIPHER =
  '422 invalid: `streamCipher` aes-256-gcm is not available: WebCrypto is missing, which browsers have on secure pages only (https, localhost)'

const METERED_PER_RECORD = 8

/** The handler's response to a query for throughput. */
interface Throughput {
  readonly values: readonly {
    readonly accumulation: { readonly name: string; readonly values: readonly [number, number][] }
  }[]
}

const MAPPED = { args: [`--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`] }

inChromium(
  'access and usage in a browser',
  (browser) => {
    describe.each<Variant>(['sources', 'package'])('from the %s', (variant) => {
      const load = async () => scriptIn<typeof Access>(await browser.page(), 'access', variant)

      it('the holder of a token has the permissions of its scope until it is revoked', async () => {
        const { holder } = await load()
        expect(await holder()).toEqual({
          names: ['orders'],
          bodies: ['first', 'live'],
          refusals: ['403 permission_denied', '404 stream_not_found', '401 authn', '401 authn'],
          ended: '401 authn',
          after: '401 authn',
          left: 0,
        })
      })

      it('the handler requires tokens', async () => {
        const { handler } = await load()
        const { table, batch, end, ...rest } = await handler()
        expect(table).toEqual({
          health: [200, 200, 200, 200],
          basins: [401, 401, 403, 200],
          streams: [401, 401, 200, 200],
          tail: [401, 401, 200, 404],
          metrics: [401, 401, 403, 200],
        })
        expect(batch).toBe('event: batch')
        expect(end).toContainEqual(expect.stringContaining('"code":"authn"'))
        expect(rest).toEqual({ errors: [], left: 0 })
      })

      it('metrics report usage', async () => {
        const { metrics } = await load()
        const { size, operations, response } = await metrics()
        const bytes = METERED_PER_RECORD * 3 + 'first'.length + 'x'.length + 'y'.length
        expect(size).toMatchObject({ kind: 'gauge', name: 'metered_size', unit: 'bytes' })
        expect(size).toHaveProperty('values', expect.arrayContaining([[expect.any(Number), bytes]]))
        const total = (points: readonly (readonly [number, number])[]) =>
          points.reduce((sum, [, n]) => sum + n, 0)
        const lists = operations.find(({ name }) => name === 'list-streams')
        expect(lists?.kind === 'accumulation' && total(lists.values)).toBe(2)
        expect(response.status).toBe(200)
        const { values } = response.body as Throughput
        const appended = values.map(({ accumulation: { name, values } }) => [name, total(values)])
        expect(appended).toEqual([
          ['standard', 0],
          ['express', bytes + METERED_PER_RECORD + 'not for all'.length],
        ])
      })

      it('an insecure page supports plain streams, but neither ciphers nor tokens', async () => {
        const page = await browser.page()
        const { port } = new URL(browser.origin)
        await page.goto(`http://${INSECURE_HOST}:${port}/`)
        const { insecure } = await scriptIn<typeof Access>(page, 'access', variant)
        expect(await insecure()).toEqual({
          isSecureContext: false,
          hasSubtle: false,
          bodies: ['a', 'b'],
          refusals: {
            create: NO_CIPHER,
            ensure: NO_CIPHER,
            reconfigure: NO_CIPHER,
            issue: NO_TOKENS,
            createRoot: NO_TOKENS,
            setRoot: NO_TOKENS,
            as: NO_TOKENS,
          },
          answered: {
            status: 503,
            body: { code: 'unavailable', message: expect.stringContaining('use https') },
          },
          listed: 200,
          basins: ['in-a-page'],
          kept: null,
          errors: [],
        })
      })
    })
  },
  MAPPED,
)
