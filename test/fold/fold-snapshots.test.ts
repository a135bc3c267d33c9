import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { fold } from '../../adapters/fold/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { lossyTextOf, utf8 } from '../../src/model/bytes.ts'
import { recordsOfSnapshot } from '../../src/sync/fold.ts'
import { outcomeOf } from '../support/engine.ts'
import { gated } from '../support/gated-storage.ts'
import {
  foldPadded,
  foldText,
  logOf,
  numbered,
  openLog,
  reopened,
  STORAGES,
  snapshotsOf,
  storedSnapshots,
  textOf,
} from './fold-support.ts'

describe('a snapshot', () => {
  test('is stored when enough records are new, and none while nothing changes', async () => {
    const { hw, log, clock } = await openLog()
    await log.append(numbered(5))
    const text = foldText(log, { snapshotEvery: 10 })
    await text.loaded()
    await clock.advance('1h')
    expect(await storedSnapshots(hw)).toEqual([])
    await log.append(numbered(5, 5))
    await clock.settle()
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 10 }])
    const { seqNum } = await snapshotsOf(hw).checkTail()
    await clock.advance('1h')
    await log.append(numbered(9, 10))
    await clock.settle()
    expect((await snapshotsOf(hw).checkTail()).seqNum).toBe(seqNum)
  })

  test('is stored on closing if enough records are new', async () => {
    const { hw, log } = await openLog()
    await log.append(numbered(9))
    await reopened(log, { snapshotEvery: 100 })
    expect(await storedSnapshots(hw)).toEqual([])
    await log.append('9')
    await reopened(log, { snapshotEvery: 100 })
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 10 }])
    const { seqNum } = await snapshotsOf(hw).checkTail()
    await reopened(log, { snapshotEvery: 1 })
    expect((await snapshotsOf(hw).checkTail()).seqNum).toBe(seqNum)
  })

  test('replaces the one before it', async () => {
    const { hw, log, clock } = await openLog()
    await log.append('a')
    const text = foldText(log, { snapshotEvery: 1 })
    for (const body of ['b', 'c', 'd']) {
      await log.append(body)
      await clock.settle()
    }
    expect(text.value).toBe('a b c d ')
    const records = await snapshotsOf(hw).read({}, { commands: false }).toArray()
    expect(records.map(({ body }) => body)).toEqual(['"a b c d "'])
  })

  test('does not delay the delivery of records', async () => {
    const storage = gated(memory())
    const { hw, log, clock } = await openLog(storage)
    await log.append('a')
    const text = foldText(log, { snapshotEvery: 1 })
    const seen: string[] = []
    text.value$.subscribe((value) => seen.push(value))
    storage.holding = true
    await clock.settle()
    expect(storage.held).toBe(1)
    storage.holding = false
    await log.append('b')
    await clock.settle()
    expect(seen).toEqual(['a ', 'a b '])
    expect(await storedSnapshots(hw)).toEqual([])
    storage.release()
    await clock.settle()
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 2 }])
  })

  test('is kept for ever in a basin whose streams expire', { tags: ['slow'] }, async () => {
    const { hw, log, clock } = await openLog()
    await hw.basin('app').reconfigure({ defaultStreamConfig: { retentionPolicy: { ageSeconds: 60 } } })
    await hw.basin('app').ensureStream('log', { retentionPolicy: 'infinite' })
    await log.append(numbered(5))
    await reopened(log, { snapshotEvery: 1 })
    await clock.advance('1d')
    expect(await reopened(log)).toEqual({ value: textOf(numbered(5)), calls: 0 })
  })

  test('of an encrypted stream is encrypted with the same key', async () => {
    const storage = memory()
    const { hw } = await openLog(storage)
    await hw.createBasin('secret', { streamCipher: 'aes-256-gcm' })
    const encryptionKey = new Uint8Array(32).fill(7)
    const log = hw.basin('secret').stream('log', { encryptionKey })
    await log.append('a')
    await reopened(log, { snapshotEvery: 1 })
    expect(await reopened(log)).toEqual({ value: 'a ', calls: 0 })
    const withoutKey = hw.basin('secret').stream('.fold/default/log')
    expect(await outcomeOf(withoutKey.readBatch())).toBe('encryption_key_invalid')
  })

  test('that cannot be stored is reported, and stored again when the next one is due', async () => {
    const storage = faultyStorage(memory())
    const { hw, log, clock } = await openLog(storage)
    await log.append(numbered(10))
    const errors: unknown[] = []
    const text = foldText(log, { snapshotEvery: 10, onSnapshotError: (error) => errors.push(error) })
    storage.failNext('append', { kind: 'quota' })
    expect(await text.loaded()).toBe(textOf(numbered(10)))
    await clock.settle()
    expect(errors).toMatchObject([{ code: 'storage_full' }])
    await log.append(numbered(9, 10))
    await clock.settle()
    expect(await storedSnapshots(hw)).toEqual([])
    await log.append('19')
    await clock.settle()
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 20 }])
    expect(errors).toHaveLength(1)
    expect(text.value).toBe(textOf(numbered(20)))
  })

  test('that cannot be stored does not end the fold, even if the report fails', async () => {
    const storage = faultyStorage(memory())
    const { log, clock } = await openLog(storage)
    await log.append('a')
    const onSnapshotError = vi.fn(() => {
      throw new Error('a bug of the app')
    })
    const text = foldText(log, { snapshotEvery: 1, onSnapshotError })
    storage.failNext('append', { kind: 'quota' })
    await text.loaded()
    await clock.settle()
    expect(onSnapshotError).toHaveBeenCalledOnce()
    await log.append('b')
    expect(await text.reached(2)).toBe('a b ')
    await text.close()
  })

  test('that cannot be loaded is reported, and the fold is rebuilt', async () => {
    const storage = faultyStorage(memory())
    const { hw, log } = await openLog(storage)
    await log.append(numbered(10))
    await reopened(log, { snapshotEvery: 1 })
    // Nothing is cached in another engine.
    const other = await open({ storage })
    onTestFinished(() => other.close())
    storage.failNext('read', { kind: 'corrupt' })
    const errors: unknown[] = []
    const onSnapshotError = (error: unknown) => errors.push(error)
    const rebuilt = await reopened(logOf(other), { onSnapshotError, snapshotEvery: 1 })
    expect(rebuilt).toEqual({ value: textOf(numbered(10)), calls: 10 })
    expect(errors).toMatchObject([{ code: 'storage' }])
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 10 }])
  })
})

describe('a snapshot is ignored, and the fold rebuilt,', () => {
  /** A log of three records with a snapshot of them. */
  async function withSnapshot(options: Parameters<typeof foldText>[1] = {}) {
    const world = await openLog()
    await world.log.append(['a', 'b', 'c'])
    await reopened(world.log, { snapshotEvery: 1, ...options })
    expect(await storedSnapshots(world.hw)).toMatchObject([{ position: 3 }])
    return world
  }
  const rebuilt = { value: 'a b c ', calls: 3 }

  test('if it is of another version, which it replaces', async () => {
    const { log, hw } = await withSnapshot()
    expect(await reopened(log, { version: 2, snapshotEvery: 1 })).toEqual(rebuilt)
    expect(await storedSnapshots(hw)).toMatchObject([{ version: 2 }])
    expect(await reopened(log, { version: 2 })).toEqual({ value: 'a b c ', calls: 0 })
    expect(await reopened(log, { version: '2' })).toEqual(rebuilt)
  })

  test('if it is of another fold', async () => {
    const { hw, log } = await withSnapshot()
    expect(await reopened(log, { name: 'other', snapshotEvery: 1 })).toEqual(rebuilt)
    expect(await hw.basin('app').stream('.fold/other/log').exists()).toBe(true)
    expect(await reopened(log)).toEqual({ value: 'a b c ', calls: 0 })
  })

  test('if it is damaged', async () => {
    const { hw, log } = await withSnapshot()
    const [snapshot] = await storedSnapshots(hw)
    const [record] = recordsOfSnapshot(snapshot!)
    await snapshotsOf(hw).append({ ...Object(record), body: 'no JSON' })
    await snapshotsOf(hw).append(['not', 'a', 'snapshot'])
    const errors: unknown[] = []
    const onSnapshotError = (error: unknown) => errors.push(error)
    expect(await reopened(log, { onSnapshotError })).toEqual(rebuilt)
    expect(errors).toMatchObject([{ code: 'undecodable_record' }])
    await snapshotsOf(hw).trim(4)
    expect(await reopened(log)).toEqual(rebuilt)
    expect(await reopened(log, { snapshotEvery: 1 })).toEqual(rebuilt)
    expect(await reopened(log)).toEqual({ value: 'a b c ', calls: 0 })
  })

  test('if it cannot be decoded', async () => {
    const { log } = await withSnapshot()
    const decode = () => {
      throw new Error('of an older time')
    }
    const errors: unknown[] = []
    const onSnapshotError = (error: unknown) => errors.push(error)
    expect(await reopened(log, { decode, onSnapshotError })).toEqual(rebuilt)
    expect(errors).toEqual([new Error('of an older time')])
  })

  test.each([
    ['shorter', ['x'], 'engine'],
    ['as long', ['x', 'y', 'z'], 'engine'],
    ['longer', ['x', 'y', 'z', 'w'], 'engine'],
    ['shorter', ['x'], 'server'],
    ['as long', ['x', 'y', 'z'], 'server'],
    ['longer', ['x', 'y', 'z', 'w'], 'server'],
  ])('if the stream was replaced by one that is %s, %j, on the %s', async (_, bodies, where) => {
    const { hw, clock } = await openLog()
    const fetch = createHandler(hw, { auth: 'none' })
    const client = await connect({ url: 'http://localhost', fetch })
    onTestFinished(() => client.close())
    const log = logOf(where === 'engine' ? hw : client)
    await log.append(['a', 'b', 'c'])
    await reopened(log, { snapshotEvery: 1 })
    expect(await reopened(log)).toEqual({ value: 'a b c ', calls: 0 })
    await logOf(hw).delete()
    await clock.advance('1s')
    await logOf(hw).append(bodies)
    expect(await reopened(log)).toEqual({ value: textOf(bodies), calls: bodies.length })
  })
})

describe('what a snapshot stores', () => {
  test.each<[string, (words: readonly string[]) => unknown, (stored: never) => readonly string[]]>([
    ['JSON', (words) => ({ words }), (stored: { words: string[] }) => stored.words],
    ['bytes', (words) => utf8(words.join()), (stored: Uint8Array) => lossyTextOf(stored).split(',')],
  ])('is what `encode` returns, such as %s, and `decode` restores it', async (_, encode, decode) => {
    const { log } = await openLog()
    await log.append(['a', 'b'])
    const words = () =>
      fold(log, {
        initial: [] as readonly string[],
        reduce: (all, { body }) => [...all, body],
        version: 1,
        snapshotEvery: 1,
        encode,
        decode,
      })
    const first = words()
    await first.loaded()
    await first.close()
    await log.append('c')
    await using second = words()
    expect(await second.loaded()).toEqual(['a', 'b', 'c'])
  })

  test('is the state at its position, even if the reducer changes it in place', async () => {
    const { hw, log, clock } = await openLog()
    await log.append(['a'])
    const list = fold(log, {
      initial: [] as string[],
      reduce: (bodies, { body }) => {
        bodies.push(body)
        return bodies
      },
      version: 1,
      snapshotEvery: 1,
    })
    for (const body of ['b', 'c', 'd']) void log.append(body)
    await clock.settle()
    await list.close()
    const [{ position, state }] = (await storedSnapshots(hw)) as unknown as [
      { position: number; state: Uint8Array },
    ]
    expect(JSON.parse(new TextDecoder().decode(state))).toEqual(['a', 'b', 'c', 'd'].slice(0, position))
  })
})

describe.each(STORAGES)('on %s', (_, create) => {
  test('a state of 5 MiB is stored in parts, and the one before stays until then', {
    tags: ['slow'],
  }, async () => {
    const storage = gated(await create())
    const { hw, log, clock } = await openLog(storage)
    await log.append('a')
    const large = foldPadded(log, 5 * 1_048_576)
    await large.loaded()
    await large.close()
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 1 }])

    // The next one is interrupted at several of its eleven parts.
    for (const part of [0, 1, 5, 10]) {
      await log.append(String(part))
      let appends = 0
      storage.onAppend = () => {
        if (appends++ === part) throw new Error('crash')
      }
      const interrupted = foldPadded(log, 0, { onSnapshotError: () => {} })
      await interrupted.loaded()
      await interrupted.close()
      storage.onAppend = () => {}
      expect(appends).toBe(part + 1)
      expect(await storedSnapshots(hw)).toMatchObject([{ position: 1 }])
    }
    await using last = foldPadded(log, 0)
    expect((await last.loaded()).bodies).toHaveLength(5)
    expect(last.value.padding).toHaveLength(5 * 1_048_576)
    await last.close()
    await clock.settle()
    // Eleven parts and a trim; all others are trimmed.
    expect(await snapshotsOf(hw).read({}, { as: 'bytes' }).toArray()).toHaveLength(12)
    expect(await storedSnapshots(hw)).toMatchObject([{ position: 5 }])
  })
})
