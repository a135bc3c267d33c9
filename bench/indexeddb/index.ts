/**
 * The IndexedDB storage in a real Chromium, against bare IndexedDB and Dexie: in one page, in turns, on a profile on the disk. Ends with code 1 when a
 * demanded ratio is missed.
 *
 *     npm run bench -- indexeddb [work ...] [--quick] [--rounds 5]
 */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { markdownOf, type Row, round } from '../harness/rows.ts'
import type * as Page from './page.ts'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const QUICK_SCALE = 0.05

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, rounds: { type: 'string' } },
})
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...PLACES].find((path) => existsSync(path))
if (executablePath === undefined) {
  console.error('There is no Chromium here. CHROMIUM_PATH tells where one is.')
  process.exit(2)
}

const { outputFiles } = await build({
  entryPoints: [join('bench', 'indexeddb', 'page.ts')],
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
const profile = await mkdtemp(join(tmpdir(), 'headwater-bench-'))
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  args: ['--no-sandbox', '--disable-gpu'],
  headless: true,
})

const rows: Row[] = []
try {
  const page = await context.newPage()
  await page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  const module = await page.evaluateHandle<typeof Page>(`import('/page.js')`)
  const known = await module.evaluate(({ WORKS }) => Object.keys(WORKS))
  const unknown = positionals.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new Error(`There is no work ${unknown}. Works: ${known.join(', ')}`)
  const bench = {
    rounds: Number(values.rounds ?? (values.quick ? 1 : 5)),
    scale: values.quick ? QUICK_SCALE : 1,
  }
  for (const name of positionals.length > 0 ? positionals : known) {
    console.error(`${name} (load ${round(loadavg()[0]!)})`)
    rows.push(
      ...(await module.evaluate(({ WORKS }, asked) => WORKS[asked.name]!(asked.bench), { name, bench })),
    )
  }
} finally {
  await context.close()
  server.close()
  server.closeAllConnections()
  await rm(profile, { recursive: true, force: true })
}
console.log(markdownOf(rows))
if (rows.some(({ isMet }) => isMet === false)) process.exitCode = 1
