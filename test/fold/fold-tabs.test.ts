import { describe, expect, test, vi } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { Engine } from '../../src/index.ts'
import {
  foldText,
  logOf,
  numbered,
  openLog,
  reopened,
  snapshotsOf,
  storedSnapshots,
  textOf,
} from './fold-support.ts'

describe('several tabs', () => {
  /** Engines on one storage, as tabs of a browser. */
  async function tabs(count: number): Promise<Engine[]> {
    const storage = memory()
    const { hw } = await openLog(storage)
    const others = Array.from({ length: count - 1 }, async () => (await openLog(storage)).hw)
    return [hw, ...(await Promise.all(others))]
  }

  test('store one snapshot of those that are due', async () => {
    const [hw, other] = (await tabs(2)) as [Engine, Engine]
    await logOf(hw).append(numbered(10))
    const texts = [hw, other].map((engine) => foldText(logOf(engine), { snapshotEvery: 10 }))
    await Promise.all(texts.map((text) => text.loaded()))
    await Promise.all(texts.map((text) => text.close()))
    const snapshots = await snapshotsOf(hw).read({}, { commands: false }).toArray()
    expect(snapshots).toHaveLength(1)
    expect((await snapshotsOf(hw).checkTail()).seqNum).toBe(1)
    expect(await reopened(logOf(other))).toEqual({ value: textOf(numbered(10)), calls: 0 })
  })

  test('with two versions of an app keep the snapshot of the one that was opened last', async () => {
    const [hw, other] = (await tabs(2)) as [Engine, Engine]
    await logOf(hw).append('a')
    const snapshots = snapshotsOf(hw)
    const old = foldText(logOf(hw), { version: 1, snapshotEvery: 1, snapshots })
    await old.loaded()
    await vi.waitFor(async () => expect(await storedSnapshots(hw)).toMatchObject([{ version: 1 }]))
    const next = foldText(logOf(other), { version: 2, snapshotEvery: 1 })
    await next.loaded()
    await next.close()
    const examine = vi.spyOn(snapshots, 'readBatch')
    for (const [index, body] of ['b', 'c'].entries()) {
      await logOf(hw).append(body)
      await old.reached(index + 2)
      await vi.waitFor(() => expect(examine).toHaveBeenCalledTimes(index + 1))
    }
    await old.close()
    expect(await storedSnapshots(hw)).toMatchObject([{ version: 2, position: 1 }])
    expect(await reopened(logOf(hw), { version: 2, snapshotEvery: 1 })).toEqual({ value: 'a b c ', calls: 2 })
    // The app was rolled back.
    expect(await reopened(logOf(hw), { version: 1, snapshotEvery: 1 })).toEqual({ value: 'a b c ', calls: 3 })
    expect(await storedSnapshots(hw)).toMatchObject([{ version: 1, position: 3 }])
  })
})
