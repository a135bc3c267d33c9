import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { LogWriter, WHOLE_LOG } from '../../../adapters/conformance/log-writer.ts'
import { checkRead } from '../../../adapters/conformance/model.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { hookedFiles, systemError } from './hooked-files.ts'
import { SimulatedDisk } from './simulated-disk.ts'
import { openSimulated } from './workload.ts'

const COUNT = 10
const BODY_BYTES = 10_000
const SMALL = { rollBytes: 20_000, largeBlockBytes: 1_000 }

describe('a log of large appends in segments', () => {
  let session: StorageSession
  let writer: LogWriter
  let isWatched: boolean
  let reading: number
  let readingMax: number
  let reads: number
  /** The number of the read that fails. */
  let failing: number

  beforeEach(async () => {
    const disk = new SimulatedDisk(new Prng(1))
    const { rollBytes, largeBlockBytes } = SMALL
    const written = await openSimulated(disk, rollBytes, 'power-loss', largeBlockBytes)
    writer = await LogWriter.create(written, 'a')
    for (let i = 0; i < COUNT; i++) await writer.append({ count: 1, bodyBytes: BODY_BYTES })
    await written.close()
    isWatched = false
    reading = readingMax = reads = failing = 0
    const files = hookedFiles(disk, async (operation) => {
      if (operation !== 'read' || !isWatched) return
      reads++
      const fails = reads === failing
      readingMax = Math.max(readingMax, ++reading)
      await new Promise((resolve) => setImmediate(resolve))
      reading--
      if (fails) throw systemError('EIO')
    })
    session = await openSimulated(files, 1e9, 'power-loss', largeBlockBytes)
    isWatched = true
  })

  afterEach(() => session.close())

  it('is read one append ahead', async () => {
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
    expect(readingMax).toBe(2)
    expect(reads).toBeLessThanOrEqual(COUNT)
  })

  it('is read no further than a limit admits', async () => {
    const blocks = await session.read('a', { ...WHOLE_LOG, recordsMax: 3 })
    expect(blocks.map(({ firstSeqNum }) => firstSeqNum)).toEqual([0, 1, 2])
    expect(reads).toBe(3)
  })

  it.each([1, 2, 5])('is no longer read once read %i has failed', async (number) => {
    failing = number
    await expect(session.read('a', WHOLE_LOG)).rejects.toMatchObject({ name: 'StorageFailure', kind: 'io' })
    expect(reading).toBe(0)
    failing = 0
    checkRead(writer.written, WHOLE_LOG, await session.read('a', WHOLE_LOG))
  })
})
