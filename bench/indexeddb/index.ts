/**
 * The IndexedDB storage in a real Chromium, against bare IndexedDB and Dexie, in turns, on one profile on the disk. Dexie has a page with a process of its own.
 * Ends with code 1 when a demanded ratio is missed.
 *
 *     npm run bench -- indexeddb [work ...] [--quick] [--rounds 5]
 */
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { loadavg, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'
import { compare } from '../harness/compare.ts'
import { markdownOf, type Row, round, speedRow } from '../harness/rows.ts'
import type * as Page from './page.ts'
import { WORKS, type Work } from './works.ts'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const QUICK_SCALE = 0.05

/** In milliseconds: between turns the browser tidies up after the last one, on the other core, at the expense of who comes next. */
const REST_MS = 300

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { quick: { type: 'boolean', default: false }, rounds: { type: 'string' } },
})
const executablePath = [process.env.CHROMIUM_PATH ?? '', ...PLACES].find((path) => existsSync(path))
if (executablePath === undefined) {
  console.error('There is no Chromium here. CHROMIUM_PATH tells where one is.')
  process.exit(2)
}

const unknown = positionals.find((name) => !(name in WORKS))
if (unknown !== undefined) {
  console.error(`There is no work ${unknown}. Works: ${Object.keys(WORKS).join(', ')}`)
  process.exit(2)
}
const ROUNDS = Number(values.rounds ?? (values.quick ? 1 : 5))
const SCALE = values.quick ? QUICK_SCALE : 1

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

/** Pages of different sites have different processes. */
async function pageOf(host: string) {
  const page = await context.newPage()
  await page.goto(`http://${host}:${(server.address() as AddressInfo).port}/`)
  const module = await page.evaluateHandle<typeof Page>(`import('/page.js')`)
  return {
    prepare: (side: string, count: number) =>
      module.evaluate(({ prepare }, [name, of]) => prepare(name, of), [side, count] as const),
    async turn(side: string, repeats: number) {
      // What is hidden is slowed down.
      await page.bringToFront()
      await setTimeout(REST_MS)
      return module.evaluate(({ turn }, [name, times]) => turn(name, times), [side, repeats] as const)
    },
    close: (side: string) => module.evaluate(({ close }, name) => close(name), side),
  }
}

const rows: Row[] = []
try {
  const [ours, rivals] = [await pageOf('127.0.0.1'), await pageOf('localhost')]
  for (const name of positionals.length > 0 ? positionals : Object.keys(WORKS)) {
    console.error(`${name} (load ${round(loadavg()[0]!)})`)
    for (const work of WORKS[name]!) rows.push(await measured(work, ours, work.samePage ? ours : rivals))
  }
} finally {
  await context.close()
  server.close()
  server.closeAllConnections()
  await rm(profile, { recursive: true, force: true })
}

type BenchPage = Awaited<ReturnType<typeof pageOf>>

async function measured(work: Work, ours: BenchPage, rivals: BenchPage): Promise<Row> {
  const count = Math.max(1, Math.round((work.count * SCALE) / work.step)) * work.step
  await ours.prepare(work.ours, count)
  await rivals.prepare(work.rival, count)
  const repeats = work.repeats ?? 1
  const { rival } = await compare(ROUNDS * work.rounds, () => ours.turn(work.ours, repeats), {
    rival: () => rivals.turn(work.rival, repeats),
  })
  await ours.close(work.ours)
  await rivals.close(work.rival)
  return speedRow(work.name, work.against, rival, work.atLeast, { each: work.each, count: count * repeats })
}

console.log(markdownOf(rows))
if (rows.some(({ isMet }) => isMet === false)) process.exitCode = 1
