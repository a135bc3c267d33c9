import { describe, expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { closeRecord, fenceRecord, open } from '../../../src/index.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import {
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  silent,
  testStorage,
  wrapped,
} from '../../support/index.ts'

/** A basin with the stream `source`, which has these records. */
async function withSource(...bodies: string[]) {
  const engine = await openEngine()
  const basin = engine.hw.basin('basin')
  await basin.createStream('source')
  const source = basin.stream('source')
  for (const body of bodies) await source.append(body)
  /** Creates a fork of `source`, or of another stream. */
  const fork = (name: string, seqNum?: number, stream = 'source') =>
    basin.createStream(name, {}, { fork: { stream, seqNum } })
  const all = (name: string) => readAll(basin.stream(name))
  return { ...engine, basin, source, fork, all }
}

onEveryKindOfStorage(() => {
  it('a fork begins with the records of another stream, as they are', async () => {
    const { basin, source, fork, all } = await withSource()
    await source.append([
      { body: 'a', headers: [['h', '1']], timestamp: 10 },
      { body: 'b', timestamp: 20 },
    ])
    await source.append(fenceRecord('me'))
    await source.append('d')
    await fork('fork', 3)
    await source.append('e')
    const { records } = await basin.stream('fork').readBatch()
    expect(records).toEqual((await source.readBatch({ count: 3 })).records)
    await basin.stream('fork').append('own')
    expect(await all('fork')).toEqual(['a', 'b', 'me', 'own'])
    expect(await all('source')).toEqual(['a', 'b', 'me', 'd', 'e'])
  })

  it('a fork has more than one batch, and all of it by default', async () => {
    const { source, fork, all } = await withSource()
    const bodies = Array.from({ length: 2_500 }, (_, index) => `record ${index}`)
    for (let at = 0; at < bodies.length; at += 1_000) await source.append(bodies.slice(at, at + 1_000))
    await fork('fork')
    expect(await all('fork')).toEqual(bodies)
    await fork('inner', 1_500, 'fork')
    expect(await all('inner')).toEqual(bodies.slice(0, 1_500))
  })

  it('a fork begins at the first record that is left', async () => {
    const { basin, source, fork } = await withSource('a', 'b', 'c')
    await source.trim(2)
    await fork('fork', 3)
    const { records } = await basin.stream('fork').readBatch()
    expect(records.map(({ seqNum, body }) => [seqNum, body])).toEqual([[2, 'c']])
    await fork('empty', 2)
    expect(await basin.stream('empty').checkTail()).toMatchObject({ seqNum: 2 })
    await expect(fork('early', 1)).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 2 })
    await expect(fork('late', 5)).rejects.toMatchObject({ code: 'invalid', field: 'seqNum' })
    expect(await basin.stream('early').exists()).toBe(false)
  })

  it('the name of a deleted source is reserved until its last fork is deleted, over three levels', async () => {
    const { basin, fork } = await withSource('a')
    await fork('one')
    await fork('two', undefined, 'one')
    await fork('other', undefined, 'one')
    await basin.stream('source').delete()
    await basin.stream('one').delete()
    for (const name of ['source', 'one']) {
      const stream = basin.stream(name)
      const calls = [
        stream.append('x'),
        stream.read().toArray(),
        stream.checkTail(),
        stream.delete(),
        stream.config(),
        basin.createStream(name),
        fork('third', undefined, name),
      ]
      expect(new Set(await Promise.all(calls.map(outcomeOf)))).toEqual(new Set(['stream_deletion_pending']))
    }
    const { items } = await basin.listStreams({ prefix: 'source' })
    expect(items.map(({ name, deletedAt }) => [name, deletedAt === null])).toEqual([['source', false]])
    await basin.stream('two').delete()
    expect(await outcomeOf(basin.stream('one').checkTail())).toBe('stream_deletion_pending')
    await basin.stream('other').delete()
    expect((await basin.listStreams()).items.map(({ name }) => name)).toEqual(['stream'])
    await basin.createStream('source')
  })

  it('a fork copies the stream of that name if another engine has replaced the known one', async () => {
    const storage = silent(testStorage({ shared: true }), 'none')
    const { hw, clock, stream } = await openEngine({ storage })
    await stream.append('old')
    const other = await open({ storage, clock })
    await other.basin('basin').stream('stream').delete()
    await other.basin('basin').stream('stream').append('new')
    await hw.basin('basin').createStream('fork', {}, { fork: { stream: 'stream' } })
    expect(await readAll(hw.basin('basin').stream('fork'))).toEqual(['new'])
    await other.close()
  })

  it('a fork that was not created does not count', async () => {
    const { basin, fork } = await withSource('a')
    await basin.createStream('taken')
    expect(await outcomeOf(fork('taken'))).toBe('resource_already_exists')
    expect(await outcomeOf(fork('new', undefined, 'none'))).toBe('stream_not_found')
    await basin.stream('source').delete()
    expect(await basin.stream('source').exists()).toBe(false)
  })

  it('a basin is deleted with forks and reserved names', async () => {
    const { hw, clock, basin, fork } = await withSource('a')
    await fork('fork')
    await fork('inner', undefined, 'fork')
    await basin.stream('source').delete()
    await basin.delete()
    await clock.advance(120_000)
    await expect.poll(() => basin.exists()).toBe(false)
    await hw.createBasin('basin')
    expect((await basin.listStreams()).items).toEqual([])
  })

  it('a stream may begin with records', async () => {
    const { basin, all } = await withSource('a')
    await basin.createStream('new', {}, { records: ['x', 'y'] })
    expect(await all('new')).toEqual(['x', 'y'])
    await basin.createStream('fork', {}, { fork: { stream: 'source' }, records: ['z'] })
    expect(await all('fork')).toEqual(['a', 'z'])
    const many = Array.from({ length: 1_001 }, () => 'x')
    expect(await outcomeOf(basin.createStream('large', {}, { records: many }))).toBe('invalid')
    expect(await basin.stream('large').exists()).toBe(false)
  })
})

it.each([undefined, 2, 1])('a fork of a closed stream begins open, of %s records', async (seqNum) => {
  const { basin, fork, all } = await withSource()
  await basin.createStream('closed', {}, { records: ['a', closeRecord()] })
  expect(await basin.stream('closed').checkTail()).toMatchObject({ seqNum: 2, closed: true })
  await fork('fork', seqNum, 'closed')
  await basin.stream('fork').append('b')
  expect(await all('fork')).toEqual(['a', 'b'])
})

it('creations of streams as forks of each other and of themselves settle', async () => {
  const { basin, fork } = await withSource()
  const circular = [fork('one', 0, 'two'), fork('two', 0, 'one'), fork('self', 0, 'self')]
  expect(await Promise.all(circular.map(outcomeOf))).toEqual(circular.map(() => 'stream_not_found'))
  // A fork waits for creations that were called before.
  const created = [basin.createStream('one'), fork('two', 0, 'one'), fork('one', 0, 'two')]
  expect(await Promise.all(created.map(outcomeOf))).toEqual(['ok', 'ok', 'resource_already_exists'])
})

it('no fork is created beyond records in the middle that have expired', async () => {
  const { clock, source, fork, all } = await withSource()
  await source.append(['a', 'b'])
  await source.reconfigure({ retentionPolicy: { ageSeconds: 60 } })
  await source.append(['c', 'd'])
  await clock.advance('2m')
  await source.reconfigure({ retentionPolicy: 'infinite' })
  await source.append('e')
  expect((await source.readBatch()).records.map(({ seqNum }) => seqNum)).toEqual([0, 1, 4])
  await expect(fork('beyond')).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 4 })
  await fork('before', 2)
  expect(await all('before')).toEqual(['a', 'b'])
})

it('no fork is created without its last records if they are removed meanwhile', {
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
  const { hw, clock, stream: source } = await openEngine({ storage, trimGraceMs: 0 })
  const basin = hw.basin('basin')
  for (let i = 0; i < 24; i++) await source.append('x'.repeat(1_000_000))
  let reads = 0
  afterRead = async () => {
    if (++reads !== 1) return
    await source.trim(24)
    await clock.advance('10m')
  }
  const forked = basin.createStream('fork', {}, { fork: { stream: 'stream', seqNum: 24 } })
  await expect(forked).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 24 })
  expect(reads).toBeGreaterThan(1)
  expect(await basin.stream('fork').exists()).toBe(false)
})

it('no fork is created of a stream that is replaced before the fork appears', async () => {
  let replace: (() => Promise<unknown>) | undefined
  const storage = wrapped(memory(), {}, (session) => ({
    async commit(changes) {
      const publishes = changes.some((change) => 'key' in change && change.key.endsWith('\0fork'))
      const before = publishes ? replace : undefined
      if (before !== undefined) replace = undefined
      await before?.()
      await session.commit(changes)
    },
  }))
  const { hw, stream } = await openEngine({ storage })
  const basin = hw.basin('basin')
  await stream.append('old')
  replace = () => stream.delete().then(() => stream.append('new'))
  const forked = basin.createStream('fork', {}, { fork: { stream: 'stream' } })
  expect(await outcomeOf(forked)).toBe('stream_not_found')
  expect(await basin.stream('fork').exists()).toBe(false)
  // It is not counted, so the name is free at once.
  await stream.delete()
  expect(await stream.exists()).toBe(false)
})

describe('a creation with records that fails', () => {
  /** The number of logs, and how the publication of the stream `new` fails. */
  async function start() {
    const logs = new Set<string>()
    const control = { publish: (commit: () => Promise<void>) => commit(), logs }
    const storage = wrapped(memory(), {}, (session) => ({
      async commit(changes) {
        const commit = async () => {
          await session.commit(changes)
          for (const change of changes) {
            if (change.kind === 'create-log') logs.add(change.logId)
            if (change.kind === 'delete-log') logs.delete(change.logId)
          }
        }
        const publishes = changes.some((change) => 'key' in change && change.key.endsWith('\0new'))
        await (publishes ? control.publish(commit) : commit())
      },
    }))
    const engine = await openEngine({ storage })
    const basin = engine.hw.basin('basin')
    const create = (body: string) => outcomeOf(basin.createStream('new', {}, { records: [body] }))
    return { ...engine, basin, control, create, before: logs.size }
  }
  const failure = (nothingWritten: boolean) => new StorageFailure('io', 'it fails', { nothingWritten })

  it('leaves nothing if nothing was written', async () => {
    const { basin, control, create, before } = await start()
    control.publish = () => Promise.reject(failure(true))
    expect(await create('a')).toBe('storage')
    expect(control.logs.size).toBe(before)
    expect(await basin.stream('new').exists()).toBe(false)
    control.publish = (commit) => commit()
    expect(await create('b')).toBe('ok')
    expect(await readAll(basin.stream('new'))).toEqual(['b'])
  })

  it('leaves a log that is removed within about an hour, unless the stream was created', async () => {
    const { basin, clock, control, create, before } = await start()
    control.publish = () => Promise.reject(failure(false))
    expect(await create('a')).toBe('storage')
    expect(control.logs.size).toBe(before + 1)
    control.publish = (commit) => commit().then(() => Promise.reject(failure(false)))
    expect(await create('b')).toBe('storage')
    expect(await readAll(basin.stream('new'))).toEqual(['b'])
    expect(control.logs.size).toBe(before + 2)
    await clock.advance('70m')
    expect(control.logs.size).toBe(before + 1)
    expect(await readAll(basin.stream('new'))).toEqual(['b'])
  })
})
