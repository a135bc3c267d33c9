/** Compares headwater with its peers and with bare programs: see `README.md`. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { loadavg, tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { measure } from './harness/measure.ts'
import type { Contestant, Measurement } from './harness/measurement.ts'
import { currentEnvironment, pageOf } from './harness/page.ts'
import { arePeersInstalled } from './harness/peers.ts'
import { type Conditions, readResults, withRows, writeResults } from './harness/results.ts'
import { Scratch, Settings } from './harness/settings.ts'
import { round } from './harness/statistics.ts'
import { markdownOf, type Row, rowOf, skippedRow } from './harness/table.ts'
import { MEASUREMENTS } from './rows/index.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '5' },
    directory: { type: 'string', default: tmpdir() },
    save: { type: 'boolean', default: false },
    render: { type: 'boolean', default: false },
    results: { type: 'string', default: 'bench/results.json' },
    page: { type: 'string', default: 'docs/benchmarks.md' },
  },
})
if (values.render) {
  render()
  process.exit()
}
/** By the full name, or by a prefix that ends before a hyphen. */
const selects = (selector: string, name: string) =>
  selector in MEASUREMENTS ? name === selector : name.startsWith(`${selector}-`)
const names = Object.keys(MEASUREMENTS).filter(
  (name) => positionals.length === 0 || positionals.some((selector) => selects(selector, name)),
)
const unknown = positionals.find((selector) => !names.some((name) => selects(selector, name)))
if (unknown !== undefined) {
  console.error(`unknown benchmark \`${unknown}\`; expected one of ${Object.keys(MEASUREMENTS).join(', ')}`)
  process.exit(2)
}
if (names.some((name) => MEASUREMENTS[name]!.needsPeers) && !arePeersInstalled()) {
  execFileSync('npm', ['install', '--prefix', 'bench'], { stdio: 'inherit' })
}

const scratch = new Scratch(values.directory)
const settings = new Settings(values.quick, Number(values.rounds), scratch)
/** A whole run replaces all rows. */
const isSaved = values.save || (positionals.length === 0 && !values.quick)
const rows: Row[] = []
process.on('exit', () => scratch.remove())
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => process.exit(1))
for (const name of names) {
  const load = loadavg()[0]!
  console.error(`${name} (load ${round(load)})`)
  try {
    const measured = await rowsOf(name, MEASUREMENTS[name]!)
    rows.push(...measured)
    // After each, so that a run that is stopped leaves what it has measured.
    if (isSaved) save(measured, load)
  } catch (error) {
    // The other rows are still useful.
    console.error(error)
    process.exitCode = 1
  }
  scratch.clear()
}
console.log(markdownOf(rows))

function save(measured: readonly Row[], load: number): void {
  const { isQuick, rounds } = settings
  const conditions: Conditions = { date: new Date().toISOString().slice(0, 10), rounds, isQuick, load }
  const added = measured.map((row) => ({ ...row, measured: conditions }))
  writeResults(values.results, withRows(readResults(values.results), currentEnvironment(), added))
  render()
}

function render(): void {
  writeFileSync(values.page, pageOf(readResults(values.results)))
}

async function rowsOf(name: string, measurement: Measurement): Promise<Row[]> {
  const work = measurement.work.replace('{size}', settings.sized(measurement.size ?? 0).toLocaleString('en'))
  const contestants: Contestant[] = [measurement.ours]
  const entries = measurement.rivals.map((rival) => {
    const why = rival.unavailable?.()
    const contestant = why === undefined ? rival.contestant : undefined
    // Two rows may compare the same programs by different quantities.
    if (contestant !== undefined && !contestants.includes(contestant)) contestants.push(contestant)
    return { rival, why, contestant }
  })
  const samples = await measure(contestants, measurement, settings)
  return entries.map(({ rival, why, contestant }) => {
    if (why !== undefined) return skippedRow(name, work, rival.against, why)
    const theirs = contestant && samples[contestants.indexOf(contestant)]
    return rowOf(name, work, measurement, rival, samples[0]!, theirs)
  })
}
