// @module-tag slow

import { readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createHandler } from '../../../adapters/http/index.ts'
import { filesystem, verifyDirectory } from '../../../adapters/storage/filesystem/index.ts'
import { RESERVE_NAME } from '../../../adapters/storage/log/space.ts'
import { assertUnlocked } from '../../../adapters/storage/media/lock.ts'
import { type Engine, open, type Stream } from '../../../src/index.ts'
import { usageMetrics } from '../../../src/usage/index.ts'
import { readAll } from '../../support/index.ts'
import { exported, openEndpoint } from '../../transfer/support.ts'
import { temporaryDirectory } from './directories.ts'
import { type LimitedDisk, limitDisk } from './limited-disk.ts'

const MIB = 1_048_576
const BODY = 'x'.repeat(50_000)

let directory: string
let disk: LimitedDisk

beforeEach(async () => {
  directory = await temporaryDirectory()
  disk = limitDisk(directory)
  disk.capacity = 6 * MIB
})

afterEach(() => disk.end())

function opened(): Promise<Engine> {
  const storage = filesystem(directory)
  return open({ storage, trimGraceMs: 0, onBackgroundError: () => {}, usage: usageMetrics() })
}

function streamOf(hw: Engine): Stream {
  return hw.basin('basin').stream('stream')
}

/** Appends until the disk is full. Resolves to the bodies. */
async function fill(hw: Engine): Promise<string[]> {
  const bodies: string[] = []
  for (;;) {
    const body = `${bodies.length} ${BODY}`
    try {
      await streamOf(hw).append(body)
    } catch (error) {
      expect(error).toMatchObject({ code: 'storage_full', mayHaveEffects: false })
      return bodies
    }
    bodies.push(body)
  }
}

describe('an engine on a full disk', () => {
  test('rejects appends with the remedy, reports the state, and works again after a trim', async () => {
    const hw = await opened()
    expect(hw.stats().storageFull).toBe(false)
    const bodies = await fill(hw)
    expect(hw.stats().storageFull).toBe(true)
    const handler = createHandler(hw, { auth: 'none' })
    const metrics = await handler(new Request('http://localhost/metrics'))
    expect(await metrics.text()).toContain('\nheadwater_storage_full 1\n')
    expect((await handler(new Request('http://localhost/health'))).status).toBe(200)
    await expect(streamOf(hw).append(BODY)).rejects.toThrow(
      'the storage is full; trim or delete streams, or add space',
    )
    await streamOf(hw).trim(bodies.length - 1)
    await vi.waitFor(() => streamOf(hw).append(BODY))
    await vi.waitUntil(() => !hw.stats().storageFull)
    expect(await readdir(directory)).toContain(RESERVE_NAME)
    await hw.close()
  })

  test('opens after a restart, and is read, verified, exported and trimmed', async () => {
    const first = await opened()
    const bodies = await fill(first)
    disk.capacity = disk.used
    await first.close()
    disk.capacity = disk.used
    const { records, problems } = await verifyDirectory(directory)
    expect({ records, problems }).toEqual({ records: bodies.length, problems: [] })
    const hw = await opened()
    expect(await readAll(streamOf(hw))).toEqual(bodies)
    expect(await exportedRecords()).toBe(bodies.length)
    await streamOf(hw).trim(bodies.length)
    await vi.waitFor(() => streamOf(hw).append(BODY))
    await hw.close()
  })

  test('opens without a reserve, locked, and can be read', async () => {
    const first = await opened()
    const bodies = await fill(first)
    await first.close()
    await unlink(join(directory, RESERVE_NAME))
    disk.capacity = disk.used
    const { records, problems } = await verifyDirectory(directory)
    expect({ records, problems }).toEqual({ records: bodies.length, problems: [] })
    const hw = await opened()
    await expect(assertUnlocked(directory)).rejects.toMatchObject({ kind: 'blocked' })
    expect(await readAll(streamOf(hw))).toEqual(bodies)
    expect(await exportedRecords()).toBe(bodies.length)
    await expect(streamOf(hw).append(BODY)).rejects.toMatchObject({ code: 'storage_full' })
    expect(hw.stats().storageFull).toBe(true)
    disk.capacity += 8 * MIB
    await streamOf(hw).append(BODY)
    expect(hw.stats().storageFull).toBe(false)
    await hw.close()
    await expect(assertUnlocked(directory)).resolves.toBeUndefined()
  })
})

/** Resolves to the number of records in an export by another engine on the directory. */
async function exportedRecords(): Promise<number> {
  const { hw, service } = await openEndpoint({ storage: filesystem(directory) })
  const text = await exported(service)
  await hw.close()
  return text.split(BODY).length - 1
}
