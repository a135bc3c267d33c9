import { crc32 } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import {
  FORMAT_VERSION,
  formatVersionOf,
  parseFileName,
} from '../../../adapters/storage/filesystem/files/file-header.ts'
import { FRAME_HEADER_BYTES } from '../../../adapters/storage/filesystem/files/frame.ts'
import { upgradeFiles } from '../../../adapters/storage/filesystem/upgrade-directory.ts'
import { verifyFiles } from '../../../adapters/storage/filesystem/verify/verify-files.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { type Loss, SimulatedDisk } from './simulated-disk.ts'
import { openSimulated, runWorkload } from './workload.ts'

const CRASHES = 25
const EARLIER = FORMAT_VERSION - 1

/** Journals, segments, adopted journals and checkpoints whose headers have an earlier version. */
async function outdatedDisk(prng: Prng): Promise<SimulatedDisk> {
  const disk = new SimulatedDisk(prng)
  await runWorkload(disk, prng, 1500, undefined, disk, 'power-loss')
  for (const name of dataFilesOf(disk)) {
    const content = disk.contentOf(name)
    const header = content.subarray(0, 32)
    header[5] = EARLIER
    header.writeUInt32LE(crc32(header.subarray(0, 28)), 28)
    const file = await disk.open(name, 'update')
    await file.write(header, 0)
    if (parseFileName(name)?.kind === 'checkpoint') await file.truncate(endOfCounts(content))
    await file.datasync()
    await file.close()
  }
  await disk.syncDirectory()
  return disk
}

/** Where a checkpoint of version 6 ends: it has no index. */
function endOfCounts(content: Buffer): number {
  const trailer = content.subarray(-24)
  const counts = trailer.readUInt32LE(8)
  return counts + FRAME_HEADER_BYTES + content.readUInt32LE(counts + 4)
}

function dataFilesOf(disk: SimulatedDisk): string[] {
  return disk.names.filter((name) => parseFileName(name) !== undefined)
}

function versionsOf(disk: SimulatedDisk): Set<number | undefined> {
  return new Set(dataFilesOf(disk).map((name) => formatVersionOf(disk.contentOf(name))))
}

async function problemsOf(disk: SimulatedDisk) {
  return (await verifyFiles(disk, { ofEngine: false })).problems
}

describe.each([1, 2, 3])('an upgrade of the files of seed %i', (seed) => {
  test('changes the format of every file, and nothing else', async () => {
    const disk = await outdatedDisk(new Prng(seed))
    expect(versionsOf(disk)).toEqual(new Set([EARLIER]))
    const progress: number[] = []
    const { versions, rewritten } = await upgradeFiles(disk, {
      onProgress: ({ done, total }) => progress.push(done / total),
    })
    expect(new Set(versions.values())).toEqual(new Set([EARLIER]))
    expect(rewritten).toBeGreaterThan(1)
    expect(progress.at(-1)).toBe(1)
    expect(progress).toEqual(progress.toSorted((a, b) => a - b))
    expect(versionsOf(disk)).toEqual(new Set([FORMAT_VERSION]))
    expect(await problemsOf(disk)).toEqual([])
    expect(await upgradeFiles(disk, {})).toMatchObject({ rewritten: 0 })
  })

  test('leaves a sound directory if the machine crashes at any point', async () => {
    const prng = new Prng(seed)
    const disk = await outdatedDisk(prng)
    const start = disk.length
    await upgradeFiles(disk, {})
    for (let i = 0; i < CRASHES; i++) {
      const loss = prng.pick<Loss>(['nothing', 'everything', 'some'])
      const crashed = disk.crashedAfter(start + prng.below(disk.length - start), loss, prng)
      expect(await problemsOf(crashed), `${loss} lost`).toEqual([])
      const session = await openSimulated(crashed, 1500, 'power-loss')
      await session.close()
      await upgradeFiles(crashed, {})
      expect(versionsOf(crashed), 'upgraded again').toEqual(new Set([FORMAT_VERSION]))
      expect(await problemsOf(crashed), 'upgraded again').toEqual([])
    }
  })
})
