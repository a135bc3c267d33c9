// @module-tag slow

import { describe, expect, it } from 'vitest'
import type { Cipher } from '../../src/model/config.ts'
import type { Variant } from './bundle.ts'
import type * as Encryption from './pages/encryption.ts'
import { inChromium, type Remote, scriptIn, scriptInWorker } from './support.ts'

type Scenarios = Remote<typeof Encryption>

inChromium('encryption in a browser', (browser) => {
  // libsodium needs a page that permits WebAssembly; WebCrypto needs no permission.
  const PAGES: Readonly<Record<Cipher, string>> = { 'aes-256-gcm': '/', 'aegis-256': '/wasm' }
  const inPage = (variant: Variant) => async (path: string) =>
    scriptIn<typeof Encryption>(await browser.page(path), 'encryption', variant)
  /** A worker has the security policy of its script, which is set here to that of the page. */
  async function inWorker(path: string): Promise<Scenarios> {
    const page = await browser.page(path)
    const policy = (await page.request.get(page.url())).headers()['content-security-policy']!
    await page.route('**/worker.js', async (route) => {
      const response = await route.fetch()
      await route.fulfill({ response, headers: { ...response.headers(), 'content-security-policy': policy } })
    })
    return scriptInWorker(page, 'encryption')
  }
  const places: readonly [name: string, load: (path: string) => Promise<Scenarios>][] = [
    ['a page', inPage('sources')],
    ['a page, as built', inPage('package')],
    ['a worker', inWorker],
  ]

  describe.each(Object.keys(PAGES) as Cipher[])('%s', (cipher) => {
    it.each(places)('in %s: preserves every byte, and needs the key', async (_, load) => {
      const { roundTrip } = await load(PAGES[cipher])
      const { body, name, value, ...rest } = await roundTrip(cipher)
      const bytes = Array.from({ length: 256 }, (_, byte) => byte)
      expect([...body]).toEqual(bytes)
      expect([...name]).toEqual(bytes)
      expect([...value]).toEqual(bytes.toReversed())
      expect(rest).toEqual({
        end: 1,
        listed: cipher,
        refusals: [
          '400 decryption_failed',
          '400 decryption_failed',
          '400 encryption_key_invalid',
          '400 encryption_key_invalid',
        ],
        tail: 1,
      })
    })

    it.each(places)('in %s: follows live records', async (_, load) => {
      const { follow } = await load(PAGES[cipher])
      expect(await follow(cipher)).toEqual({
        bodies: ['0 a', '1 b', '2 c', '3 d', '4 e'],
        wrongKey: '400 decryption_failed',
        open: 0,
      })
    })

    it.each(places)('in %s: keeps the order of 200 concurrent appends', async (_, load) => {
      const { appendInOrder } = await load(PAGES[cipher])
      expect(await appendInOrder(cipher, 200)).toEqual({
        seqNums: Array.from({ length: 200 }, (_, i) => i),
        isInOrder: true,
        left: { pendingAppends: 0, appendBytesInFlight: 0 },
      })
    })
  })

  it('aegis256() rejects with `unsupported` in a page that permits no WebAssembly', async () => {
    const { aegisWithoutWebAssembly } = await inPage('sources')('/')
    expect(await aegisWithoutWebAssembly()).toMatch(/^unsupported: .*WebAssembly/)
  })
})
