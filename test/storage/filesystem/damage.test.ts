// @module-tag slow

import { beforeAll, describe, expect, test } from 'vitest'
import { Prng } from '../../../src/runtime/random.ts'
import { changedDisk, contentsOf, engineDisk } from './engine-disk.ts'
import type { SimulatedDisk } from './simulated-disk.ts'
import { verifyDisk } from './verify-disk.ts'

/** Of the fields at the beginning of a file, each byte is damaged, and behind them one of so many. */
const HEADER_BYTES = 32
const STRIDE = 16
const TRUNCATIONS_PER_FILE = 6

/** How the directory was left, and the files of which each part is damaged: both have the same segments. */
const ENDS: readonly (readonly [
  end: 'crashed' | 'reopened',
  durability: 'power-loss' | 'process-crash',
  kinds: readonly string[],
])[] = [
  ['crashed', 'process-crash', ['journal', 'checkpoint', 'segment']],
  ['reopened', 'power-loss', ['journal', 'checkpoint']],
]

describe.each(ENDS)('a directory that was %s, with durability %s,', (end, durability, kinds) => {
  let disk: SimulatedDisk
  let contents: unknown
  beforeAll(async () => {
    disk = await engineDisk(end, durability)
    contents = await contentsOf(disk)
  })

  test('is sound', async () => {
    const report = await verifyDisk(disk)
    expect(report).toMatchObject({ problems: [], logs: 5 })
    expect(report.blocks).toBeGreaterThan(10)
    expect(report.records).toBeGreaterThan(report.blocks)
    for (const kind of ['journal', 'checkpoint', 'segment']) {
      expect(disk.names.some((name) => name.startsWith(kind))).toBe(true)
    }
  })

  test.each(kinds)(
    'reports a flipped bit in a %s with its file, unless nothing depends on it',
    async (kind) => {
      const prng = new Prng(7)
      const shares: number[] = []
      for (const name of disk.names.filter((file) => file.startsWith(kind))) {
        const { length } = disk.contentOf(name)
        let checked = 0
        let reported = 0
        for (let offset = 0; offset < length; offset += offset < HEADER_BYTES ? 1 : STRIDE) {
          const bit = 1 << prng.below(8)
          const flipped = withBytes(disk, name, (content) => {
            content[offset]! ^= bit
            return content
          })
          reported += await checkReported(flipped, name, `${name} at ${offset} with bit ${bit}`)
          checked++
        }
        shares.push(reported / checked)
      }
      expect(Math.max(...shares)).toBeGreaterThan(0.2)
    },
  )

  test('reports a truncated file, unless a crash may have left it', async () => {
    const prng = new Prng(8)
    const last = disk.names.findLast((name) => name.startsWith('journal'))
    // Where groups end, a shorter last journal looks as a crash before them would leave it.
    for (const name of disk.names.filter((name) => name !== last)) {
      const content = disk.contentOf(name)
      const ends = Array.from({ length: TRUNCATIONS_PER_FILE }, () => prng.below(content.length))
      // An earlier journal that ends with a whole group lacks the groups behind it.
      if (name.startsWith('journal')) ends.push(content.lastIndexOf('GRUP'))
      for (const end of ends) {
        const truncated = withBytes(disk, name, (content) => content.subarray(0, end))
        await checkReported(truncated, name, `${name} truncated to ${end} bytes`)
      }
    }
  })

  test('reports a missing file', async () => {
    const journals = disk.names.filter((name) => name.startsWith('journal'))
    for (const name of disk.names) {
      // Nothing refers to the last one: without it, the directory is as it was before its creation.
      if (journals.length > 1 && name === journals.at(-1)) continue
      const without = changedDisk(disk, (file, content) => (file === name ? undefined : content))
      const { problems } = await verifyDisk(without)
      const isUnchanged = JSON.stringify(await contentsOf(without)) === JSON.stringify(contents)
      if (problems.length === 0) expect(isUnchanged, name).toBe(true)
      else if (!name.startsWith('checkpoint')) expect(problems[0]).toMatchObject({ file: name, offset: 0 })
    }
  })

  /**
   * Resolves to 1 when a problem was found. Damage that is not reported changes nothing visible, or is
   * noted as the leftover of a crash.
   */
  async function checkReported(damaged: SimulatedDisk, name: string, description: string): Promise<number> {
    const { problems, notes } = await verifyDisk(damaged)
    if (problems.length > 0) {
      expect(new Set(problems.map(({ file }) => file)), description).toEqual(new Set([name]))
      return 1
    }
    const isTorn = notes.some(({ file, note }) => file === name && note.includes('crash'))
    if (!isTorn) expect(await contentsOf(damaged), description).toEqual(contents)
    // Only the end of the last journal may be the leftover of a crash.
    else expect(name).toBe(disk.names.findLast((file) => file.startsWith('journal')))
    return 0
  }
})

test('reports swapped segments', async () => {
  const disk = await engineDisk('closed')
  const [file, second] = disk.names.filter((name) => name.startsWith('segment'))
  expect(second).toBeDefined()
  const swapped = changedDisk(disk, (name, content) => {
    return name === file ? disk.contentOf(second!) : name === second ? disk.contentOf(file!) : content
  })
  const { problems } = await verifyDisk(swapped)
  expect(problems).toMatchObject([{ file, problem: expect.stringContaining('bytes are expected') }])
})

function withBytes(disk: SimulatedDisk, file: string, change: (content: Buffer) => Buffer): SimulatedDisk {
  return changedDisk(disk, (name, content) => (name === file ? change(Buffer.from(content)) : content))
}
