import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import type * as Page from '../browser/page.ts'
import { host } from '../harness/host.ts'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']

/**
 * Milliseconds before a turn, because the browser cleans up after the turn before on the other core, which
 * would slow down this one.
 */
const REST_MS = 300

host({
  /** A side of `browser/page.ts`, in a browser of its own. */
  async page({ directory, side, size }: { directory: string; side: string; size: number }) {
    const executablePath = [process.env.CHROMIUM_PATH ?? '', ...PLACES].find((path) => existsSync(path))
    if (executablePath === undefined) throw new Error('no Chromium found; set CHROMIUM_PATH to its path')
    const server = await servePage()
    const context = await chromium.launchPersistentContext(join(directory, side), {
      executablePath,
      args: ['--no-sandbox', '--disable-gpu'],
      headless: true,
    })
    const page = await context.newPage()
    await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
    const module = await page.evaluateHandle<typeof Page>(`import('/page.js')`)
    await module.evaluate(({ prepare }, [name, count]) => prepare(name, count), [side, size] as const)
    return {
      // Chromium throttles hidden pages.
      reset: () => Promise.all([page.bringToFront(), setTimeout(REST_MS)]),
      async turn(count) {
        const wallMs = await module.evaluate(({ turn }, times) => turn(times), count)
        return { wallMs, units: count * size }
      },
      // The browser consists of many processes.
      usage: () => ({ cpuMs: Number.NaN, peakBytes: Number.NaN }),
      async close() {
        await context.close()
        server.closeAllConnections()
        server.close()
      },
    }
  },
})

async function servePage() {
  const { outputFiles } = await build({
    entryPoints: [join('bench', 'browser', 'page.ts')],
    bundle: true,
    minify: true,
    format: 'esm',
    platform: 'browser',
    external: ['zstd-codec'],
    outdir: 'out',
    write: false,
  })
  const [script] = outputFiles
  const server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html')
    response.end(isScript ? script!.contents : '<!doctype html><title>headwater</title>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}
