import { expect, it } from 'vitest'
import { type Basin, fenceRecord, open } from '../../../src/index.ts'
import {
  onEveryKindOfStorage,
  openEngine,
  outcomeOf,
  readAll,
  silent,
  testStorage,
} from '../../support/index.ts'

async function withSource(bodies: readonly string[]): Promise<{ readonly basin: Basin }> {
  const { hw } = await openEngine()
  const basin = hw.basin('basin')
  await basin.createStream('source')
  for (const body of bodies) await basin.stream('source').append(body)
  return { basin }
}

onEveryKindOfStorage(() => {
  it('begins a stream with the records of another one, as they are', async () => {
    const { basin } = await withSource([])
    const source = basin.stream('source')
    await source.append([
      { body: 'a', headers: [['h', '1']], timestamp: 10 },
      { body: 'b', timestamp: 20 },
    ])
    await source.append(fenceRecord('me'))
    await source.append('d')
    await basin.createStream('fork', {}, { fork: { stream: 'source', seqNum: 3 } })
    await source.append('e')
    const { records } = await basin.stream('fork').readBatch()
    expect(records).toEqual((await source.readBatch({ count: 3 })).records)
    await basin.stream('fork').append('own')
    expect(await readAll(basin.stream('fork'))).toEqual(['a', 'b', 'me', 'own'])
    expect(await readAll(source)).toEqual(['a', 'b', 'me', 'd', 'e'])
  })

  it('copies more than one batch, and all of it by default', async () => {
    const { basin } = await withSource([])
    const bodies = Array.from({ length: 2_500 }, (_, index) => `record ${index}`)
    for (let at = 0; at < bodies.length; at += 1_000) {
      await basin.stream('source').append(bodies.slice(at, at + 1_000))
    }
    await basin.createStream('fork', {}, { fork: { stream: 'source' } })
    expect(await readAll(basin.stream('fork'))).toEqual(bodies)
    await basin.createStream('inner', {}, { fork: { stream: 'fork', seqNum: 1_500 } })
    expect(await readAll(basin.stream('inner'))).toEqual(bodies.slice(0, 1_500))
  })

  it('begins at the first record that is left', async () => {
    const { basin } = await withSource(['a', 'b', 'c'])
    await basin.stream('source').trim(2)
    await basin.createStream('fork', {}, { fork: { stream: 'source', seqNum: 3 } })
    const { records } = await basin.stream('fork').readBatch()
    expect(records.map(({ seqNum, body }) => [seqNum, body])).toEqual([[2, 'c']])
    await basin.createStream('empty', {}, { fork: { stream: 'source', seqNum: 2 } })
    expect(await basin.stream('empty').checkTail()).toMatchObject({ seqNum: 2 })
    const early = basin.createStream('early', {}, { fork: { stream: 'source', seqNum: 1 } })
    await expect(early).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 2 })
    const late = basin.createStream('late', {}, { fork: { stream: 'source', seqNum: 5 } })
    await expect(late).rejects.toMatchObject({ code: 'invalid', field: 'seqNum' })
    expect(await basin.stream('early').exists()).toBe(false)
  })

  it('reserves the name of a deleted source until its last fork is deleted, over three levels', async () => {
    const { basin } = await withSource(['a'])
    await basin.createStream('one', {}, { fork: { stream: 'source' } })
    await basin.createStream('two', {}, { fork: { stream: 'one' } })
    await basin.createStream('other', {}, { fork: { stream: 'one' } })
    await basin.stream('source').delete()
    await basin.stream('one').delete()
    for (const name of ['source', 'one']) {
      const stream = basin.stream(name)
      for (const call of [
        () => stream.append('x'),
        () => stream.read().toArray(),
        () => stream.checkTail(),
        () => stream.delete(),
        () => stream.config(),
        () => basin.createStream(name),
        () => basin.createStream('third', {}, { fork: { stream: name } }),
      ]) {
        expect(await outcomeOf(call())).toBe('stream_deletion_pending')
      }
    }
    const { items } = await basin.listStreams({ prefix: 'source' })
    expect(items.map(({ name, deletedAt }) => [name, deletedAt === null])).toEqual([['source', false]])
    await basin.stream('two').delete()
    expect(await outcomeOf(basin.stream('one').checkTail())).toBe('stream_deletion_pending')
    await basin.stream('other').delete()
    const { items: left } = await basin.listStreams()
    expect(left.map(({ name }) => name)).toEqual(['stream'])
    await basin.createStream('source')
  })

  it('copies the stream of that name if another engine has replaced the known one', async () => {
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

  it('does not count a fork that was not created', async () => {
    const { basin } = await withSource(['a'])
    await basin.createStream('taken')
    const fork = { stream: 'source' }
    expect(await outcomeOf(basin.createStream('taken', {}, { fork }))).toBe('resource_already_exists')
    expect(await outcomeOf(basin.createStream('new', {}, { fork: { stream: 'none' } }))).toBe(
      'stream_not_found',
    )
    await basin.stream('source').delete()
    expect(await basin.stream('source').exists()).toBe(false)
  })

  it('deletes a basin with forks and reserved names', async () => {
    const { hw, clock } = await openEngine({ storage: testStorage() })
    const basin = hw.basin('basin')
    await basin.stream('stream').append('a')
    await basin.createStream('fork', {}, { fork: { stream: 'stream' } })
    await basin.createStream('inner', {}, { fork: { stream: 'fork' } })
    await basin.stream('stream').delete()
    await basin.delete()
    await clock.advance(120_000)
    await expect.poll(() => basin.exists()).toBe(false)
    await hw.createBasin('basin')
    expect((await basin.listStreams()).items).toEqual([])
  })

  it('creates a stream with its first records', async () => {
    const { basin } = await withSource(['a'])
    await basin.createStream('new', {}, { records: ['x', 'y'] })
    expect(await readAll(basin.stream('new'))).toEqual(['x', 'y'])
    await basin.createStream('fork', {}, { fork: { stream: 'source' }, records: ['z'] })
    expect(await readAll(basin.stream('fork'))).toEqual(['a', 'z'])
    const many = Array.from({ length: 1_001 }, () => 'x')
    expect(await outcomeOf(basin.createStream('large', {}, { records: many }))).toBe('invalid')
    expect(await basin.stream('large').exists()).toBe(false)
  })
})

it('settles creations of streams as forks of each other and of themselves', async () => {
  const { hw } = await openEngine()
  const basin = hw.basin('basin')
  const forkOf = (name: string, stream: string) =>
    outcomeOf(basin.createStream(name, {}, { fork: { stream } }))
  const circular = [forkOf('one', 'two'), forkOf('two', 'one'), forkOf('self', 'self')]
  expect(await Promise.all(circular)).toEqual(Array.from(circular, () => 'stream_not_found'))
  // A fork waits for creations that were called before.
  const created = [outcomeOf(basin.createStream('one')), forkOf('two', 'one'), forkOf('one', 'two')]
  expect(await Promise.all(created)).toEqual(['ok', 'ok', 'resource_already_exists'])
})

it('creates no fork of a stream beyond records in its middle that have expired', async () => {
  const { hw, clock } = await openEngine()
  const basin = hw.basin('basin')
  const source = basin.stream('source')
  await basin.createStream('source')
  await source.append(['a', 'b'])
  await source.reconfigure({ retentionPolicy: { ageSeconds: 60 } })
  await source.append(['c', 'd'])
  await clock.advance('2m')
  await source.reconfigure({ retentionPolicy: 'infinite' })
  await source.append('e')
  expect((await source.readBatch()).records.map(({ seqNum }) => seqNum)).toEqual([0, 1, 4])
  const beyond = basin.createStream('beyond', {}, { fork: { stream: 'source' } })
  await expect(beyond).rejects.toMatchObject({ code: 'history_trimmed', seqNum: 4 })
  await basin.createStream('before', {}, { fork: { stream: 'source', seqNum: 2 } })
  expect(await readAll(basin.stream('before'))).toEqual(['a', 'b'])
})
