import { describe, expect, expectTypeOf, test } from 'vitest'
import { type ChangeSource, type Fold, fold, type StreamChange } from '../../adapters/fold/index.ts'
import { HeadwaterError, type JsonRecord } from '../../src/index.ts'
import { outcomeOf } from '../support/engine.ts'
import { foldText, openLog, reopened, STORAGES, snapshotsOf, storedSnapshots, watch } from './fold-support.ts'

describe.each(STORAGES)('on %s', (_, storage) => {
  test('reduces the records that are stored, and those that follow', async () => {
    const { log } = await openLog(await storage())
    await log.append(['a', 'b'])
    const text = foldText(log)
    expect(await text.loaded()).toBe('a b ')
    const { end } = await log.append('c')
    expect(await text.reached(end.seqNum)).toBe('a b c ')
    expect(text).toMatchObject({ value: 'a b c ', confirmedValue: 'a b c ', position: 3 })
  })
})

test('the value of an empty stream is the initial one', async () => {
  const { hw, log } = await openLog()
  await hw.basin('app').ensureStream('log')
  const text = foldText(log, { initial: 'nothing' })
  expect(await text.loaded()).toBe('nothing')
  expect(text.position).toBe(0)
})

test('a missing stream ends the fold, or is created', async () => {
  const { hw, log } = await openLog()
  const missing = foldText(log)
  expect(await outcomeOf(missing.loaded())).toBe('stream_not_found')
  expect(await outcomeOf(missing.reached(0))).toBe('stream_not_found')
  const created = foldText(log, { create: true })
  expect(await created.loaded()).toBe('')
  expect(await hw.basin('app').stream('log').exists()).toBe(true)
})

test('reduces values of JSON, without command records', async () => {
  const { hw, log } = await openLog()
  const numbers = log.json<number>()
  await log.fence('writer')
  await numbers.append(2, { fencingToken: 'writer' })
  await log.fence('', { fencingToken: 'writer' })
  await numbers.appendBatch([3, 4])
  const reduce = (total: number, { value }: JsonRecord<number>) => total + value
  const sum = fold(numbers, { initial: 0, reduce, version: 1, snapshotEvery: 1 })
  expectTypeOf(sum).toEqualTypeOf<Fold<number>>()
  expect(await sum.loaded()).toBe(9)
  expect(sum.position).toBe(5)
  await sum.close()
  const again = fold(numbers, { initial: 0, reduce: () => Number.NaN, version: 1 })
  expect(await again.loaded()).toBe(9)
  await hw.close()
})

test('a plain stream is folded without its command records', async () => {
  const { log } = await openLog()
  await log.append('a')
  await log.fence('token')
  const text = foldText(log)
  expect(await text.loaded()).toBe('a ')
  expect(text.position).toBe(2)
})

test('emits the value once it is complete, and then each change', async () => {
  const { clock, log } = await openLog()
  await log.append(Array.from({ length: 900 }, () => 'a'))
  await log.append(Array.from({ length: 900 }, () => 'b'))
  const count = fold(log, {
    initial: 0,
    reduce: (total, { body }) => (body === 'ignored' ? total : total + 1),
    version: 1,
  })
  const early = watch(count)
  await count.loaded()
  expect(early.seen).toEqual([1_800])
  const late = watch(count)
  expect(late.seen).toEqual([1_800])
  await log.append('c')
  await log.append('ignored')
  await clock.settle()
  expect(early.seen).toEqual([1_800, 1_801])
  expect(late.seen).toEqual([1_800, 1_801])
  late.stop()
  await log.append('d')
  await clock.settle()
  await count.close()
  expect(early.seen).toEqual([1_800, 1_801, 1_802, 'complete'])
  expect(late.seen).toEqual([1_800, 1_801])
})

test('heartbeats cause nothing', async () => {
  const { clock, log } = await openLog()
  await log.append('a')
  const text = foldText(log, { snapshotEvery: 1 })
  const values = watch(text)
  await text.loaded()
  await clock.settle()
  await clock.advance('10m')
  expect(values.seen).toEqual(['a '])
})

test('a reducer that throws ends the fold with the record', async () => {
  const { clock, log } = await openLog()
  await log.append(['a', 'b', 'bad'])
  const text = foldText(log, {
    reduce: (value, { body }) => {
      if (body === 'bad') throw new Error('what is this?')
      return value + body
    },
  })
  const values = watch(text)
  const expected = { code: 'reducer_failed', seqNum: 2, cause: new Error('what is this?') }
  await expect(text.loaded()).rejects.toMatchObject(expected)
  expect(values.seen).toMatchObject([expected])
  expect(watch(text).seen).toMatchObject([expected])
  await log.append('c')
  await clock.settle()
  expect(text.position).toBe(0)
  await text.close()
})

test('a deleted stream ends the fold', async () => {
  const { log, clock } = await openLog()
  await log.append('a')
  const text = foldText(log)
  await text.loaded()
  await log.delete()
  await clock.settle()
  expect(await outcomeOf(text.loaded())).toBe('stream_deleted')
})

test.each(['fold', 'stream', 'engine'])(
  'a fold keeps its value when the %s is closed, and rejects what can no longer come',
  async (closed) => {
    const { hw, log, clock } = await openLog()
    await log.append('a')
    const text = foldText(log)
    const values = watch(text)
    await text.loaded()
    const beyond = outcomeOf(text.reached(5))
    await { fold: text, stream: log, engine: hw }[closed]!.close()
    await clock.settle()
    expect(values.seen).toEqual(['a ', 'complete'])
    expect(watch(text).seen).toEqual(['a ', 'complete'])
    expect([await text.loaded(), await text.reached(1)]).toEqual(['a ', 'a '])
    expect([await beyond, await outcomeOf(text.reached(5))]).toEqual(['closed', 'closed'])
    expect(hw.stats().openReads).toBe(0)
    await text.close()
  },
)

test('the signal ends the fold with its reason', async () => {
  const { hw, log, clock } = await openLog()
  await log.append('a')
  const controller = new AbortController()
  const text = foldText(log, { signal: controller.signal, snapshotEvery: 1_000 })
  await text.loaded()
  const waiting = text.reached(5)
  controller.abort('enough')
  await expect(waiting).rejects.toBe('enough')
  await expect(text.loaded()).rejects.toBe('enough')
  await log.append('b')
  await text.close()
  await clock.settle()
  expect(text.value).toBe('a ')
  expect(await snapshotsOf(hw).exists()).toBe(false)
  const late = foldText(log, { signal: controller.signal })
  await expect(late.loaded()).rejects.toBe('enough')
})

test('the signal of a call ends its wait only', async () => {
  const { log } = await openLog()
  await log.append('a')
  const text = foldText(log)
  await text.loaded()
  const controller = new AbortController()
  const waiting = text.reached(2, { signal: controller.signal })
  controller.abort('later')
  await expect(waiting).rejects.toBe('later')
  await expect(text.close({ signal: controller.signal })).rejects.toBe('later')
  await text.close()
})

test('a position that is not an integer is rejected instead of awaited for ever', async () => {
  const { log } = await openLog()
  const text = foldText(log)
  for (const position of ['1', undefined, -1, 0.5, Number.NaN]) {
    const reached = text.reached(position as number)
    await expect(reached).rejects.toMatchObject({ code: 'invalid', field: 'seqNum' })
  }
})

test('a fold that is closed before it is loaded rejects with `closed`', async () => {
  const { log } = await openLog()
  await log.append('a')
  const text = foldText(log)
  const loaded = outcomeOf(text.loaded())
  await text.close()
  expect(await loaded).toBe('closed')
})

test('leaves no timer and no session behind', async () => {
  const { hw, log, clock } = await openLog()
  await log.append('a')
  const before = clock.pending
  const text = foldText(log)
  await text.loaded()
  await text.close()
  await clock.settle()
  expect(clock.pending).toBe(before)
  expect((await hw.stats()).openReads).toBe(0)
})

test.each([
  ['reduce', { reduce: undefined }],
  ['reduce', { reduce: 'sum' }],
  ['version', { version: undefined }],
  ['version', { version: Number.NaN }],
  ['version', { version: 'v'.repeat(101) }],
  ['name', { name: '' }],
  ['name', { name: 'a/b' }],
  ['snapshotEvery', { snapshotEvery: 0 }],
  ['snapshotEvery', { snapshotEvery: 1.5 }],
  ['snapshots', { snapshots: 'there' }],
  ['schema', { schema: {} }],
  ['trimmed', { trimmed: 'ignore' }],
  ['decode', { encode: () => '' }],
  ['interval', { interval: 5 }],
])('rejects an invalid `%s`', async (field, options) => {
  const { log } = await openLog()
  const invalid = { initial: '', reduce: () => '', version: 1, ...options }
  expect(() => fold(log, invalid as never)).toThrow(expect.objectContaining({ code: 'invalid', field }))
})

test('rejects an initial value that a snapshot would change, unless none is stored', async () => {
  const { log } = await openLog()
  await log.append('a')
  const options = {
    initial: new Map<string, number>(),
    reduce: (map: Map<string, number>) => map,
    version: 1,
  }
  expect(() => fold(log, options)).toThrow(expect.objectContaining({ code: 'invalid' }))
  await using unsaved = fold(log, { ...options, snapshotEvery: Number.POSITIVE_INFINITY })
  expect(await unsaved.loaded()).toEqual(new Map())
})

test('rejects a source that is no stream', () => {
  const options = { initial: '', reduce: () => '', version: 1 }
  expect(() => fold('log' as never, options)).toThrow(
    expect.objectContaining({ code: 'invalid', field: 'source' }),
  )
})

interface Item {
  readonly seqNum?: number
  readonly timestamp?: number
  readonly text: string
}

/** A source that passes on what a test gives it. */
class ManualSource implements ChangeSource<Item, Item> {
  readonly starts: number[] = []
  #queue: Partial<StreamChange<Item, Item>>[] = []
  #wake: (() => void) | undefined

  push(...changes: Partial<StreamChange<Item, Item>>[]): void {
    this.#queue.push(...changes)
    this.#wake?.()
  }

  async *changes(from: number, { signal }: { readonly signal: AbortSignal }) {
    this.starts.push(from)
    while (!signal.aborted) {
      for (const change of this.#queue.splice(0)) {
        yield { confirmed: [], position: 0, pending: [], isCaughtUp: true, ...change }
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve
        signal.addEventListener('abort', () => resolve())
      })
    }
  }
}

const joinItems = (text: string, item: Item) => text + item.text
const item = (seqNum: number, text: string): Item => ({ seqNum, text, timestamp: seqNum })
const waiting = (number: number, text: string) => ({ number, item: { text } })

test('shows pending records on top of the confirmed value, and stores snapshots without them', async () => {
  const { hw, clock } = await openLog()
  const source = new ManualSource()
  const snapshots = hw.basin('app').stream('snapshots')
  const options = { initial: '', reduce: joinItems, version: 1, snapshots, snapshotEvery: 1 }
  const text = fold(source, options)
  const values = watch(text)
  source.push({ confirmed: [item(0, 'a')], position: 1, pending: [waiting(1, 'x')] })
  expect(await text.loaded()).toBe('ax')
  expect(text.confirmedValue).toBe('a')
  const pending = [waiting(1, 'x'), waiting(2, 'y')]
  source.push({ position: 1, pending })
  await clock.settle()
  source.push({ confirmed: [item(1, 'b')], position: 2, pending })
  await clock.settle()
  source.push({ confirmed: [item(2, 'x')], position: 3, pending: pending.slice(1) })
  await clock.settle()
  expect(values.seen).toEqual(['ax', 'axy', 'abxy'])
  expect(text).toMatchObject({ value: 'abxy', confirmedValue: 'abx', position: 3 })
  await text.close()

  const next = new ManualSource()
  await using again = fold(next, options)
  next.push({ confirmed: [item(2, 'x'), item(3, 'y')], position: 4 })
  expect(await again.loaded()).toBe('abxy')
  expect(next.starts).toEqual([2])
})

test('begins again when a synced stream does', async () => {
  const { clock } = await openLog()
  const source = new ManualSource()
  await using text = fold(source, { initial: '', reduce: joinItems, version: 1 })
  const values = watch(text)
  source.push({ confirmed: [item(0, 'a')], position: 1 })
  await text.loaded()
  source.push({ isReset: true, confirmed: [], position: 0 })
  await clock.settle()
  source.push({ confirmed: [item(0, 'b')], position: 1, isCaughtUp: false })
  await clock.settle()
  expect(values.seen).toEqual(['a'])
  source.push({ confirmed: [item(1, 'c')], position: 2 })
  await clock.settle()
  expect(values.seen).toEqual(['a', 'bc'])
  expect(source.starts).toEqual([0, 0])
})

test('a source that ends or fails ends the waits for later records', async () => {
  const failing = (end: () => void): ChangeSource<Item> => ({
    async *changes() {
      yield { confirmed: [item(0, 'a')], position: 1, pending: [], isCaughtUp: true }
      end()
    },
  })
  const options = { initial: '', reduce: joinItems, version: 1 }
  const ended = fold(
    failing(() => {}),
    options,
  )
  expect(await outcomeOf(ended.reached(2))).toBe('closed')
  const failed = fold(
    failing(() => {
      throw new HeadwaterError('storage', 'it broke')
    }),
    options,
  )
  expect(await outcomeOf(failed.reached(2))).toBe('storage')
  await Promise.all([ended.close(), failed.close()])
})

test('a fold of a stream that was closed before has its value, and stores a snapshot', async () => {
  const { hw, log } = await openLog()
  await log.append('a')
  await log.close()
  expect(await reopened(log, { snapshotEvery: 10 })).toEqual({ value: 'a ', calls: 1 })
  expect(await storedSnapshots(hw)).toMatchObject([{ position: 2 }])
  expect(await reopened(log, { snapshotEvery: 10 })).toEqual({ value: 'a ', calls: 0 })
})

test('a source that ends before it has caught up has its final value', async () => {
  const sum = fold(
    {
      async *changes() {
        yield { start: 0, confirmed: [{ seqNum: 0 }], position: 1, pending: [], isCaughtUp: false }
      },
    },
    { initial: 0, reduce: (count) => count + 1, version: 1 },
  )
  const values = watch(sum)
  expect(await sum.loaded()).toBe(1)
  expect(values.seen).toEqual([1, 'complete'])
})
