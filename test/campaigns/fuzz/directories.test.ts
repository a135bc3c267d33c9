import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { filesystem, verifyDirectory } from '../../../adapters/storage/filesystem/index.ts'
import { type Engine, HeadwaterError, open, type SequencedRecord } from '../../../src/index.ts'
import { copyOfDirectory, temporaryDirectory } from '../../storage/filesystem/directories.ts'
import { shareOfRuns } from '../../support/property-runs.ts'
import { byteDamage } from './damage.ts'
import { allocatedDuring } from './memory.ts'
import { settledOutcomeOf } from './outcomes.ts'

const BASIN = 'my-basin'
const STREAMS = ['a', 'b', 'c']
const MEMORY = { perFileByte: 4, beside: 16 * 1024 * 1024 }

/** Fills a directory. Resolves to the path, and to a copy from before the engine was closed. */
async function written(): Promise<{ readonly closed: string; readonly crashed: string }> {
  const closed = await temporaryDirectory()
  const hw = await open({ storage: filesystem(closed) })
  await hw.ensureBasin(BASIN)
  const basin = hw.basin(BASIN)
  for (const name of STREAMS) await basin.ensureStream(name)
  for (let i = 0; i < 24; i++) {
    const stream = basin.stream(STREAMS[i % 3]!)
    await stream.append(Array.from({ length: 1 + (i % 2) }, () => `${i} `.repeat(5 * i)))
  }
  const crashed = await copyOfDirectory(closed)
  await hw.close()
  return { closed, crashed }
}

/** Everything that an engine reads of a directory: the records of each stream. */
async function readAll(directory: string): Promise<ReadonlyMap<string, readonly SequencedRecord[]>> {
  const hw: Engine = await open({ storage: filesystem(directory) })
  try {
    const records = new Map<string, readonly SequencedRecord[]>()
    // The damage may be where the basin was created.
    const { items: basins } = await hw.listBasins()
    const { items } = basins.length === 0 ? { items: [] } : await hw.basin(BASIN).listStreams()
    for (const { name } of items) {
      records.set(name, await hw.basin(BASIN).stream(name).read({}, { as: 'bytes' }).toArray())
    }
    return records
  } finally {
    await hw.close()
  }
}

describe.each(['closed', 'crashed'] as const)(
  'a directory whose engine was %s',
  { tags: ['slow'] },
  (end) => {
    it('opens without what is damaged, or fails as one that verification reports', async () => {
      const directory = (await written())[end]
      const names = (await readdir(directory)).sort()
      const files = new Map(
        await Promise.all(names.map(async (name) => [name, await readFile(join(directory, name))] as const)),
      )
      const stored = await readAll(await copyOfDirectory(directory))
      const size = [...files.values()].reduce((sum, { length }) => sum + length, 0)
      const property = fc.asyncProperty(fc.nat(), byteDamage([]), async (which, damage) => {
        const name = names[which % names.length]!
        const damaged = await temporaryDirectory()
        for (const [file, content] of files) {
          await writeFile(join(damaged, file), file === name ? damage(content) : content)
        }
        const report = await settledOutcomeOf(() => verifyDirectory(damaged))
        const { outcome, bytes } = await allocatedDuring(() => readAll(damaged))
        expect(bytes, 'allocated bytes').toBeLessThanOrEqual(MEMORY.beside + MEMORY.perFileByte * size)
        if ('error' in outcome) {
          expect(HeadwaterError.is(outcome.error) && outcome.error.code, String(outcome.error)).toBe(
            'storage',
          )
          const isReported = 'error' in report || report.value.problems.length > 0
          expect(isReported, `verification reports what fails with ${outcome.error}`).toBe(true)
        } else {
          for (const [stream, found] of outcome.value) {
            const seqNums = found.map(({ seqNum }) => seqNum)
            expect(found).toEqual(stored.get(stream)?.filter(({ seqNum }) => seqNums.includes(seqNum)))
          }
        }
        await rm(damaged, { recursive: true })
      })
      // Each run writes and opens a directory.
      await fc.assert(property, shareOfRuns(1 / 4))
    })
  },
)
