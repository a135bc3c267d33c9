import { describe, expect, it } from 'vitest'
import type { Cipher } from '../../src/index.ts'
import type { Variant } from './bundle.ts'
import type * as Encryption from './pages/encryption.ts'
import { inChromium, type Remote, scriptIn, scriptInWorker } from './support.ts'

type Scenarios = Remote<typeof Encryption>

inChromium('encryption in a browser', (browser) => {
  // libsodium is WebAssembly, which a strict page does not permit; WebCrypto needs no permission.
  const PAGES: Readonly<Record<Cipher, string>> = { 'aes-256-gcm': '/', 'aegis-256': '/wasm' }
  const inPage = (variant: Variant) => async (path: string) =>
    scriptIn<typeof Encryption>(await browser.page(path), 'encryption', variant)
  /** A worker has a policy of its own, that of its script: here it gets that of the page. */
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
    it.each(places)('in %s: keeps every byte, for the holder of the key alone', async (_, load) => {
      const { thereAndBack } = await load(PAGES[cipher])
      const { body, name, value, ...rest } = await thereAndBack(cipher)
      const bytes = Array.from({ length: 256 }, (_, byte) => byte)
      expect([...body]).toEqual(bytes)
      expect([...name]).toEqual(bytes)
      expect([...value]).toEqual(bytes.toReversed())
      expect(rest).toEqual({
        end: 1,
        listed: cipher,
        refusals: ['400 decryption_failed', '400 decryption_failed', '400 bad_header', '400 bad_header'],
        tail: 1,
      })
    })

    it.each(places)('in %s: follows live', async (_, load) => {
      const { follow } = await load(PAGES[cipher])
      expect(await follow(cipher)).toEqual({
        bodies: ['0 a', '1 b', '2 c', '3 d', '4 e'],
        stranger: '400 decryption_failed',
        open: 0,
      })
    })

    it.each(places)('in %s: keeps the order of 200 appends that nobody waits for', async (_, load) => {
      const { inOrder } = await load(PAGES[cipher])
      expect(await inOrder(cipher, 200)).toEqual({
        seqNums: Array.from({ length: 200 }, (_, i) => i),
        isInOrder: true,
        left: { pendingAppends: 0, appendBytesInFlight: 0 },
      })
    })
  })
})
