// @module-tag slow

import { expect, it } from 'vitest'
import type * as Engine from './pages/engine.ts'
import { inChromium, type Remote, scriptIn, scriptInWorker, startService } from './support.ts'

const BYTES = Array.from({ length: 256 }, (_, byte) => byte)
const ROOT_TOKEN = 'root-token-of-a-test'
/** The name of a host that is not local, so that its pages are no secure contexts. */
const INSECURE_HOST = 'insecure.test'

inChromium(
  'in Chromium',
  (browser) => {
    const load = async (path?: string) => scriptIn<typeof Engine>(await browser.page(path), 'engine')
    const places: readonly [name: string, globals: string[], load: () => Promise<Remote<typeof Engine>>][] = [
      ['a page', ['window'], load],
      ['a worker', ['WorkerGlobalScope'], async () => scriptInWorker(await browser.page(), 'engine')],
    ]

    it.each(places)('the engine runs in %s, without globals of Node', async (_, globals, load) => {
      const { surroundings, useEngine, encrypt } = await load()
      expect(await surroundings()).toEqual(globals)
      expect(await useEngine()).toEqual({
        bytes: { body: BYTES, headers: [BYTES, BYTES.toReversed()] },
        bodies: ['a', 'b', 'c'],
        refused: expect.stringMatching(/^seq_num_mismatch: /),
        first: 3,
        closed: expect.stringMatching(/^closed: /),
        left: { openReads: 0, pendingAppends: 0 },
      })
      expect(await encrypt('aes-256-gcm')).toEqual({
        body: BYTES,
        refused: expect.stringMatching(/^decryption_failed: /),
      })
    })

    it('aegis-256 encrypts in a page that permits WebAssembly, and others say what is missing', async () => {
      const [permitting, other] = [await load('/wasm'), await load('/')]
      expect((await permitting.encrypt('aegis-256')).body).toEqual(BYTES)
      expect(await other.aegisWithoutWebAssembly()).toMatch(/^unsupported: .*WebAssembly/)
    })

    it('an insecure page has plain streams, but neither ciphers nor tokens', async () => {
      const page = await browser.page()
      await page.goto(`http://${INSECURE_HOST}:${new URL(browser.origin).port}/`)
      const { insecure } = await scriptIn<typeof Engine>(page, 'engine')
      expect(await insecure()).toEqual({
        isSecureContext: false,
        body: 'a',
        refusals: [
          'invalid: `streamCipher` aes-256-gcm is not available: WebCrypto is missing, which browsers have on secure pages only (https, localhost)',
          'unsupported: access tokens need WebCrypto, which insecure pages lack: use https',
        ],
      })
    })

    it('the client of a page of another origin appends, and follows over a lost connection', async () => {
      const service = await startService({ auth: 'token' })
      await service.hw.setRootToken(ROOT_TOKEN)
      const { useClient, follow, followed } = await load()
      expect(await useClient(service.url, ROOT_TOKEN)).toEqual({
        produced: [2, 3],
        stored: ['one', 'two', 'a', 'b'],
        bytes: [[0, 255]],
        refused: expect.stringMatching(/^seq_num_mismatch: /),
      })
      await service.idle()
      const stream = service.hw.basin('my-first-app').stream('s')
      await stream.trim(5)
      await follow(service.url, ROOT_TOKEN)
      await stream.append('live')
      await expect.poll(async () => (await followed()).at(-1)).toBe('live')
      await service.restart()
      await stream.append('after the restart')
      await expect.poll(async () => (await followed()).slice(-2)).toEqual(['live', 'after the restart'])
    })
  },
  { args: [`--host-resolver-rules=MAP ${INSECURE_HOST} 127.0.0.1`] },
)
