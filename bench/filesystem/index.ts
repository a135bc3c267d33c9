/**
 * The filesystem storage against what else one would take, work by work. Each side does its share in turns, on the same disk, with the same
 * bytes, so that the ratios mean something on a busy machine. Ends with code 1 when a demanded ratio is missed.
 *
 *     npm run bench -- filesystem [work ...] [--quick] [--rounds 5] [--directory /on/a/disk]
 */
import { loadavg, tmpdir } from 'node:os'
import { parseArgs } from 'node:util'
import { markdownOf, type Row, round } from '../harness/rows.ts'
import type { Work } from './harness/bench.ts'
import { Scratch } from './harness/scratch.ts'
import { batches } from './work/batches.ts'
import { manyWriters } from './work/many-writers.ts'
import { oneWriter } from './work/one-writer.ts'
import { opening, openingManyStreams } from './work/opening.ts'
import { reading } from './work/reading.ts'

const WORKS: Readonly<Record<string, Work>> = {
  'one-writer': oneWriter,
  'many-writers': manyWriters,
  batches,
  reading,
  opening,
  'many-streams': openingManyStreams,
}
/** Of the records, when it has to be quick: enough to see that everything works, not to measure it. */
const QUICK_SCALE = 0.02

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    directory: { type: 'string', default: tmpdir() },
  },
})
const unknown = positionals.find((name) => !(name in WORKS))
if (unknown !== undefined) {
  console.error(`There is no work ${unknown}. Works: ${Object.keys(WORKS).join(', ')}`)
  process.exit(2)
}

const scale = values.quick ? QUICK_SCALE : 1
const rounds = Number(values.rounds ?? (values.quick ? 1 : 5))
const names = positionals.length > 0 ? positionals : Object.keys(WORKS)
const rows: Row[] = []
const scratch = await Scratch.in(values.directory)
try {
  for (const name of names) {
    console.error(`${name} (load ${round(loadavg()[0]!)})`)
    rows.push(...(await WORKS[name]!({ scratch, rounds, scale })))
  }
} finally {
  await scratch.remove()
}
console.log(markdownOf(rows))
if (rows.some(({ isMet }) => isMet === false)) process.exitCode = 1
