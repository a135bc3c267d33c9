import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { Collection, StoredBlock } from '../../../src/storage/contract.ts'
import { openFiles } from '../../storage/filesystem/open-files.ts'
import { SimulatedDisk } from '../../storage/filesystem/simulated-disk.ts'
import { byteDamage } from './damage.ts'
import { allocatedDuring } from './memory.ts'
import { settledOutcomeOf } from './outcomes.ts'
import { corrupt } from './rejections.ts'

const COLLECTIONS: readonly Collection[] = ['basins', 'streams', 'deadlines', 'tokens', 'usage', 'settings']
const LOG_IDS = ['a', 'b', 'c']
/** So that some journals become segments. */
const OPTIONS = { durability: 'power-loss', rollBytes: 700 } as const
const MEMORY = { perInputByte: 100, beside: 8 * 1024 * 1024 }

type Directory = ReadonlyMap<string, Buffer>

/** Every operation of an engine that reads. Resolves to the blocks of each log. */
async function readAll(files: Directory): Promise<ReadonlyMap<string, readonly StoredBlock[]>> {
  const session = await openFiles(new SimulatedDisk(new Prng(1), files), OPTIONS)
  try {
    for (const collection of COLLECTIONS)
      await session.list(collection, { prefix: '', after: '', limit: 1000 })
    const blocks = new Map<string, readonly StoredBlock[]>()
    for (const id of LOG_IDS) {
      await session.head(id)
      blocks.set(id, await session.read(id, WHOLE_LOG))
    }
    return blocks
  } finally {
    await session.close()
  }
}

/** Opening may fail only if verification reports damage, and takes no more memory than the files allow. */
async function opened(files: Directory) {
  const report = await verifyFiles(new SimulatedDisk(new Prng(1), files), { ofEngine: false })
  const { outcome, bytes } = await allocatedDuring(() => settledOutcomeOf(() => readAll(files)))
  if ('error' in outcome) throw outcome.error
  const size = [...files.values()].reduce((sum, { length }) => sum + length, 0)
  expect(bytes, 'allocated bytes').toBeLessThanOrEqual(MEMORY.beside + MEMORY.perInputByte * size)
  const contents = outcome.value
  if ('value' in contents) return contents.value
  expect(contents.error).toSatisfy(corrupt)
  expect(report.problemCount, `problems of a directory that fails with ${contents.error}`).toBeGreaterThan(0)
  return undefined
}

/** The result of appends, trims and commits. */
async function writtenDirectory(isClosed: boolean): Promise<Directory> {
  const random = new Prng(1)
  const disk = new SimulatedDisk(random)
  const session = await openFiles(disk, OPTIONS)
  const writers = await Promise.all(LOG_IDS.map((id) => LogWriter.create(session, id)))
  for (let i = 0; i < 24; i++) {
    const writer = writers[i % 3]!
    const bodyBytes = 5 * i
    if (i % 8 === 7) await writer.append({ bodyBytes, trimPoint: writer.head.tail.seqNum })
    else await writer.append({ bodyBytes, count: 1 + (i % 2) })
    await session.commit([{ kind: 'put', collection: 'settings', key: `k${i % 3}`, value: { i } }])
    if (i % 8 === 0) await session.reclaim({ now: 0, trimmedBefore: Number.MAX_SAFE_INTEGER, blocksMax: 100 })
  }
  if (isClosed) await session.close()
  const files = new Map(disk.names.map((name) => [name, disk.contentOf(name)]))
  if (!isClosed) await session.close()
  return files
}

describe.each([true, false])('a directory whose engine was closed: %s', { tags: ['slow'] }, (isClosed) => {
  let files: Directory
  let blocks: ReadonlyMap<string, readonly StoredBlock[]>
  beforeAll(async () => {
    files = await writtenDirectory(isClosed)
    blocks = (await opened(files))!
    expect([...files.keys()].map((name) => name.split('-')[0])).toContain('segment')
    expect([...blocks.values()].every((of) => of.length > 2)).toBe(true)
  })

  it('opens without what is damaged, or fails as one that verification reports', async () => {
    const property = fc.asyncProperty(fc.nat(), byteDamage([]), async (which, damage) => {
      const names = [...files.keys()]
      const name = names[which % names.length]!
      const content = Buffer.from(damage(files.get(name)!))
      const found = await opened(new Map([...files, [name, content]]))
      for (const [id, written] of found === undefined ? [] : blocks) {
        const kept = found!.get(id)!
        const numbers = kept.map(({ firstSeqNum }) => firstSeqNum)
        expect(kept).toEqual(written.filter(({ firstSeqNum }) => numbers.includes(firstSeqNum)))
      }
    })
    await fc.assert(property)
  })
})

/** Directories that once failed: the content of each file as hexadecimal digits. */
const FOUND: readonly { readonly why: string; readonly files: Readonly<Record<string, string>> }[] =
  JSON.parse(readFileSync(new URL('damaged-directories.json', import.meta.url), 'utf8'))

it.for(FOUND.map(({ why, files }) => [why, files] as const))(
  'a directory once failed: %s',
  async ([, files]) => {
    await opened(new Map(Object.entries(files).map(([name, digits]) => [name, Buffer.from(digits, 'hex')])))
  },
)
