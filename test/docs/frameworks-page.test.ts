import { readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { build, type Plugin } from 'esbuild'
import { expect, it, onTestFinished } from 'vitest'
import { toNodeHandler } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, open } from '../../src/index.ts'
import { describeInChromium } from '../browser/chromium.ts'
import { restartableBrowser } from '../browser/restartable.ts'
import { PROJECT, section } from './examples.ts'

/** `client.js`, `page.js` and the function that issues a token. */
async function parts(): Promise<string[]> {
  const blocks = (await section('docs/frameworks.md', 'The page')).matchAll(/^```js\n([\s\S]*?)^```$/gm)
  return [...blocks].map(([, code]) => code!)
}

async function bundledPage(): Promise<string> {
  const [client, page] = await parts()
  const clientModule: Plugin = {
    name: 'client-module',
    setup(bundling) {
      bundling.onLoad({ filter: /client\.js$/, namespace: 'page' }, () => ({
        contents: client!,
        resolveDir: PROJECT,
      }))
      bundling.onResolve({ filter: /^\.\/client\.js$/ }, ({ path }) => ({ path, namespace: 'page' }))
    },
  }
  const { outputFiles } = await build({
    stdin: { contents: page!, resolveDir: PROJECT },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    external: ['./zstd-module-*', 'node:http2'],
    plugins: [clientModule],
  })
  return outputFiles[0]!.text
}

/** The function of the page, on this engine. */
async function tokenIssuer(hw: Engine): Promise<(user: string) => Promise<string>> {
  const [, , code] = await parts()
  const body = code!.replace(/^import .*$/m, '').replace('export ', '')
  return new Function('hw', `${body}\nreturn streamToken`)(hw)
}

describeInChromium('the page of docs/frameworks.md', () => {
  const browser = restartableBrowser()

  it('shows the records of the route, with a token that reads and does no more', async () => {
    const hw = await open({ storage: memory() })
    const chat = hw.basin('my-app').stream('chat')
    await chat.append(['hello', 'hi'])
    const streamToken = await tokenIssuer(hw)
    const script = await bundledPage()
    const streams = toNodeHandler(hw, { prefix: '/streams' })
    const server = createServer(async (request, response) => {
      if (request.url!.startsWith('/streams/')) return streams(request, response)
      if (request.url === '/stream-token') return response.end(await streamToken('ada'))
      const isScript = request.url === '/page.js'
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
      const html =
        '<!doctype html><link rel="icon" href="data:,"><ol></ol><script type="module" src="page.js"></script>'
      return response.end(isScript ? script : html)
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(async () => {
      server.closeAllConnections()
      server.close()
      await hw.close()
    })
    const page = await browser.page(`http://localhost:${(server.address() as AddressInfo).port}/`)
    const shown = () => page.getByRole('listitem').allTextContents()
    await expect.poll(shown).toEqual(['hello', 'hi'])
    await chat.append('later')
    await expect.poll(shown).toEqual(['hello', 'hi', 'later'])
    const holder = hw
      .as(await streamToken('ben'))
      .basin('my-app')
      .stream('chat')
    await expect(holder.append('not permitted')).rejects.toMatchObject({ code: 'permission_denied' })
  })

  it.each(['next/app/chat', 'sveltekit/src/routes/chat'])(
    'the page of %s has the same client',
    async (path) => {
      const [client] = await parts()
      expect(await readFile(`${PROJECT}/test/frameworks/${path}/client.js`, 'utf8')).toBe(client)
    },
  )
})
