import assert from 'node:assert/strict'
import { cp, readFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { build } from 'esbuild'
import { App, freePort } from './app.mjs'
import { launchChromium } from './chromium.mjs'
import { until } from './until.mjs'

const ROUNDS = 2

/** What an app has to pass that can be killed and started again, with its streams on disk. */
export const SYNCED_CHECKS = {
  'synced profiles': async (app, mode) => {
    const directory = `${app.directory}-on-disk`
    await cp(app.directory, directory, { recursive: true, verbatimSymlinks: true })
    await cp(join(import.meta.dirname, 'durable-streams.js'), join(directory, 'streams.js'))
    const port = await freePort()
    let server = await App.start(mode, directory, port)
    const browser = await openBrowser(directory, () => server.token)
    try {
      const given = { url: `${server.url}/streams`, basin: server.basin, name: 'synced' }
      const [ada, ben] = [await browser.open(given), await browser.open(given)]
      for (let round = 0; round < ROUNDS; round++) {
        const appended = [ada.append(bodiesOf('ada', round)), ben.append(bodiesOf('ben', round))]
        await server.stop()
        await Promise.all(appended)
        await ben.setOffline(true)
        server = await App.start(mode, directory, port)
        await ada.append([`ada ${round} last`])
        await ben.append([`ben ${round} last`])
        await ada.flush()
        await ben.setOffline(false)
      }
      await Promise.all([ada.flush(), ben.flush()])
      const stored = await server.bodies('synced')
      for (const name of ['ada', 'ben']) {
        const rounds = Array.from({ length: ROUNDS }, (_, round) => [
          ...bodiesOf(name, round),
          `${name} ${round} last`,
        ])
        const own = stored.filter((body) => body.startsWith(name))
        assert.deepEqual(own, rounds.flat())
      }
      for (const { confirmed } of [ada, ben]) {
        await until('the records of the server', async () => (await confirmed()).length >= stored.length)
        assert.deepEqual(await confirmed(), stored)
      }
    } finally {
      await browser.close()
      await server.stop()
    }
  },
}

function bodiesOf(name, round) {
  return Array.from({ length: 10 }, (_, i) => `${name} ${round}.${i}`)
}

/** Opens Chromium for pages that run the package of an app. Each has storage of its own. */
async function openBrowser(directory, tokenOf) {
  const script = await bundleFor(directory)
  const server = createServer(({ url: path }, response) => {
    if (path === '/token') response.end(tokenOf())
    else if (path === '/page.js') response.setHeader('content-type', 'text/javascript').end(script)
    else response.setHeader('content-type', 'text/html').end('<script type="module" src="page.js"></script>')
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const browser = await launchChromium()
  return {
    async open(stream) {
      const context = await browser.newContext()
      const page = await context.newPage()
      await page.goto(`http://127.0.0.1:${server.address().port}/`)
      await page.evaluate((given) => globalThis.start(given), stream)
      return {
        append: (bodies) => page.evaluate((given) => globalThis.append(given), bodies),
        flush: () => page.evaluate(() => globalThis.flush()),
        confirmed: () => page.evaluate(() => globalThis.confirmed()),
        setOffline: (isOffline) => context.setOffline(isOffline),
      }
    },
    async close() {
      await browser.close()
      server.close()
    },
  }
}

async function bundleFor(directory) {
  const { outputFiles } = await build({
    // As if it were in the app: with the package that is installed there.
    stdin: { contents: await readFile(join(import.meta.dirname, 'synced-page.js')), resolveDir: directory },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'browser',
    target: 'es2022',
    logLevel: 'error',
    external: ['node:http2', './zstd-module-*'],
  })
  return outputFiles[0].contents
}
