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
  const places: readonly [name: string, load: (path: string) => Promise<Scenarios>][] = [
    ['a page', inPage('sources')],
    ['a page, as built', inPage('package')],
    ['a worker', async (path) => scriptInWorker(await browser.page(path), 'encryption')],
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

  it('aegis-256 says so where the page permits no WebAssembly', async () => {
    const { withoutWasm } = await inPage('package')('/')
    expect(await withoutWasm()).toBe('CompileError')
  })
})
