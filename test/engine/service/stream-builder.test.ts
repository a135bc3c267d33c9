import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { closeRecord } from '../../../src/index.ts'
import type { CatalogChange } from '../../../src/storage/contract.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import { openEngine, outcomeOf, readAll, wrapped } from '../../support/index.ts'

/** A storage whose logs can be listed, and whose publication of the stream `new` fails as the test says. */
function failingStorage() {
  const logs = new Set<string>()
  let fail: ((commit: () => Promise<void>) => Promise<void>) | undefined
  const storage = wrapped(memory(), {}, (session) => ({
    async commit(changes) {
      const commit = async () => {
        await session.commit(changes)
        for (const change of changes) track(change)
      }
      const publishes = changes.some((change) => 'key' in change && change.key.endsWith('\0new'))
      await (publishes && fail !== undefined ? fail(commit) : commit())
    },
  }))
  function track(change: CatalogChange): void {
    if (change.kind === 'create-log') logs.add(change.logId)
    if (change.kind === 'delete-log') logs.delete(change.logId)
  }
  return {
    storage,
    logs,
    onPublish: (handle: typeof fail) => {
      fail = handle
    },
  }
}

it('leaves nothing of a creation that certainly failed', async () => {
  const { storage, logs, onPublish } = failingStorage()
  const { hw } = await openEngine({ storage })
  const basin = hw.basin('basin')
  const before = logs.size
  onPublish(() => Promise.reject(new StorageFailure('io', 'no space', { nothingWritten: true })))
  expect(await outcomeOf(basin.createStream('new', {}, { records: ['a'] }))).toBe('storage')
  onPublish(undefined)
  expect(logs.size).toBe(before)
  expect(await basin.stream('new').exists()).toBe(false)
  await basin.createStream('new', {}, { records: ['b'] })
  expect(await readAll(basin.stream('new'))).toEqual(['b'])
})

it('removes the log of a creation of unknown outcome, unless the stream was created', async () => {
  const { storage, logs, onPublish } = failingStorage()
  const { hw, clock } = await openEngine({ storage })
  const basin = hw.basin('basin')
  const before = logs.size
  onPublish(() => Promise.reject(new StorageFailure('io', 'lost', { nothingWritten: false })))
  expect(await outcomeOf(basin.createStream('new', {}, { records: ['a'] }))).toBe('storage')
  expect(logs.size).toBe(before + 1)
  onPublish(async (commit) => {
    await commit()
    throw new StorageFailure('io', 'lost', { nothingWritten: false })
  })
  expect(await outcomeOf(basin.createStream('new', {}, { records: ['b'] }))).toBe('storage')
  onPublish(undefined)
  expect(await readAll(basin.stream('new'))).toEqual(['b'])
  expect(logs.size).toBe(before + 2)
  await clock.advance('70m')
  expect(logs.size).toBe(before + 1)
  expect(await readAll(basin.stream('new'))).toEqual(['b'])
})

it('begins a fork of a closed stream open, and can close a stream with its first records', async () => {
  const { hw } = await openEngine()
  const basin = hw.basin('basin')
  await basin.createStream('closed', {}, { records: ['a', closeRecord()] })
  expect(await basin.stream('closed').checkTail()).toMatchObject({ seqNum: 2, closed: true })
  for (const [name, seqNum] of [
    ['all', undefined],
    ['last', 2],
    ['first', 1],
  ] as const) {
    await basin.createStream(name, {}, { fork: { stream: 'closed', seqNum } })
    await basin.stream(name).append('b')
    expect([name, await readAll(basin.stream(name))]).toEqual([name, ['a', 'b']])
  }
})

it('creates no fork without its last records when they are removed while the first ones are copied', {
  tags: ['slow'],
}, async () => {
  let afterRead = async () => {}
  const storage = wrapped(memory(), {}, (session) => ({
    async read(...args) {
      const blocks = await session.read(...args)
      await afterRead()
      return blocks
    },
  }))
  const { hw, clock } = await openEngine({ storage, trimGraceMs: 0 })
  const basin = hw.basin('basin')
  await basin.createStream('source')
  const source = basin.stream('source')
  for (let i = 0; i < 24; i++) await source.append('x'.repeat(1_000_000))
  let reads = 0
  afterRead = async () => {
    if (++reads !== 1) return
    await source.trim(24)
    await clock.advance('10m')
  }
  const forked = basin.createStream('fork', {}, { fork: { stream: 'source', seqNum: 24 } })
  await expect(forked).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 24 })
  expect(reads).toBeGreaterThan(1)
  expect(await basin.stream('fork').exists()).toBe(false)
})
