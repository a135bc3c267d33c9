import { mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { type Engine, open, trimRecord } from '../../../src/index.ts'
import { systemClock } from '../../../src/runtime/clock.ts'
import type { StorageSession } from '../../../src/storage/contract.ts'
import { temporaryDirectory } from './directories.ts'

/** Two engines on one directory. With `copies`, each comes from its own copy of the modules. */
async function twoEngines(directory: string, copies: boolean): Promise<[Engine, Engine]> {
  const first = await open({ storage: filesystem(directory) })
  if (!copies) return [first, await open({ storage: filesystem(directory) })]
  vi.resetModules()
  const storages = await import('../../../adapters/storage/filesystem/index.ts')
  const engines = await import('../../../src/index.ts')
  expect(storages.filesystem).not.toBe(filesystem)
  return [first, await engines.open({ storage: storages.filesystem(directory) })]
}

for (const copies of [false, true]) {
  const kind = copies ? 'of two copies of the modules' : 'of one module'

  test(`two engines ${kind} append with conditions, and one wins each sequence number`, {
    tags: ['slow'],
  }, async () => {
    const engines = await twoEngines(await temporaryDirectory(), copies)
    const streams = engines.map((hw) => hw.basin('my-basin').stream('log'))
    await streams[0]!.append('first')
    const won = [0, 0]
    for (let seqNum = 1; seqNum <= 10; seqNum++) {
      const order = seqNum % 2 === 0 ? [0, 1] : [1, 0]
      const attempts = order.map((i) => streams[i]!.append(`by ${i}`, { matchSeqNum: seqNum }))
      const outcomes = await Promise.allSettled(attempts)
      const [winner, ...others] = outcomes.flatMap(({ status }, i) =>
        status === 'fulfilled' ? [order[i]!] : [],
      )
      expect(others).toEqual([])
      won[winner!]!++
      const [loss] = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []))
      expect(loss).toMatchObject({ code: 'seq_num_mismatch', mayHaveEffects: false })
    }
    expect(won[0]! + won[1]!).toBe(10)
    for (const stream of streams) expect((await stream.checkTail()).seqNum).toBe(11)
    for (const hw of engines) await hw.close()
  })

  test(`two engines ${kind} interleave appends without a gap, and each follows the other`, {
    tags: ['slow'],
  }, async () => {
    const engines = await twoEngines(await temporaryDirectory(), copies)
    const streams = engines.map((hw) => hw.basin('my-basin').stream('log'))
    await streams[0]!.append('0')
    const followed = streams.map(async (stream) => {
      const bodies: string[] = []
      for await (const { seqNum, body } of stream.follow({ seqNum: 0 })) {
        expect(seqNum).toBe(bodies.length)
        bodies.push(body)
        if (bodies.length === 41) break
      }
      return bodies
    })
    await Promise.all(
      streams.flatMap((stream, i) => Array.from({ length: 20 }, (_, n) => stream.append(`${i}/${n}`))),
    )
    const [first, second] = await Promise.all(followed)
    expect(first).toEqual(second)
    expect(new Set(first).size).toBe(41)
    for (const hw of engines) await hw.close()
  })

  test(`two engines ${kind} see trims, deletions, configurations and tokens of each other`, {
    tags: ['slow'],
  }, async () => {
    const [first, second] = await twoEngines(await temporaryDirectory(), copies)
    const stream = first.basin('my-basin').stream('log')
    const same = second.basin('my-basin').stream('log')
    await stream.append(['a', 'b', 'c'])
    expect((await same.checkTail()).seqNum).toBe(3)
    await same.append([trimRecord(2)])
    expect((await stream.readBatch({ seqNum: 0, clamp: true })).records[0]!.seqNum).toBe(2)
    await stream.append('d', { fencingToken: '' })

    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read' as const] }
    const holder = second.as(await first.issueAccessToken({ id: 'ci', scope }))
    const session = holder.basin('my-basin').stream('log').follow({ tailOffset: 1 })
    const records = session[Symbol.asyncIterator]()
    expect((await records.next()).value?.body).toBe('d')
    const failure = expect(records.next()).rejects.toMatchObject({ code: 'authn' })
    await first.revokeAccessToken('ci')
    await failure

    await second.basin('my-basin').stream('log').delete()
    await expect(stream.checkTail()).rejects.toMatchObject({ code: 'stream_not_found' })
    await stream.append('new')
    expect((await same.readBatch({ seqNum: 0 })).records.map(({ body }) => body)).toEqual(['new'])
    await first.close()
    await same.append('after the other closed')
    await second.close()
  })
}

test('the last of the engines that share a directory releases it', async () => {
  const directory = await temporaryDirectory()
  const sessions = await Promise.all(Array.from({ length: 5 }, () => openSession(directory)))
  for (const session of sessions) {
    expect(await owners(directory)).toHaveLength(1)
    await session.close()
    await expect(session.get('streams', 'a')).rejects.toMatchObject({ kind: 'closed' })
  }
  expect(await owners(directory)).toEqual([])
})

test('an opening while the last session closes opens the directory again', async () => {
  const directory = await temporaryDirectory()
  for (let round = 0; round < 5; round++) {
    const first = await openSession(directory)
    const written = put(first, round)
    const closing = first.close()
    const second = await openSession(directory)
    await Promise.all([written, closing])
    expect((await second.get('settings', 'a'))?.value).toBe(round)
    await second.close()
  }
})

test('a path through a symbolic link leads to the shared storage', async () => {
  const base = await temporaryDirectory()
  await mkdir(join(base, 'data'))
  await symlink(join(base, 'data'), join(base, 'link'))
  const [first, second] = [await openSession(join(base, 'data')), await openSession(join(base, 'link'))]
  await put(first, 1)
  expect((await second.get('settings', 'a'))?.value).toBe(1)
  await first.close()
  await second.close()
})

test('engines that share a directory must have the same durability', async () => {
  const directory = await temporaryDirectory()
  const session = await openSession(directory)
  const other = filesystem(directory, { durability: 'process-crash' })
  const opening = other.open({ clock: systemClock, onLogChanged: () => {} })
  await expect(opening).rejects.toMatchObject({ kind: 'blocked', nothingWritten: true })
  await put(session, 1)
  await session.close()
  await (await other.open({ clock: systemClock, onLogChanged: () => {} })).close()
})

test('a failed opening releases everything', async () => {
  const directory = await temporaryDirectory()
  await writeFile(join(directory, 'checkpoint-0000000001'), 'damaged')
  const failures = await Promise.allSettled([openSession(directory), openSession(directory)])
  for (const failure of failures)
    expect(failure).toMatchObject({ status: 'rejected', reason: { kind: 'corrupt' } })
  await rm(join(directory, 'checkpoint-0000000001'))
  await (await openSession(directory)).close()
})

test('engines that a reload has left open stay usable, and the last one that closes ends the storage', async () => {
  const directory = await temporaryDirectory()
  const engines = await twoEngines(directory, true)
  for (const hw of engines) await hw.basin('my-basin').stream('log').append('one')
  await engines[1].close()
  await engines[0].basin('my-basin').stream('log').append('two')
  expect(await owners(directory)).toHaveLength(1)
  await engines[0].close()
  expect(await owners(directory)).toEqual([])
})

function openSession(directory: string): Promise<StorageSession> {
  return filesystem(directory).open({ clock: systemClock, onLogChanged: () => {} })
}

function put(session: StorageSession, value: number): Promise<void> {
  return session.commit([{ kind: 'put', collection: 'settings', key: 'a', value }])
}

async function owners(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => name.startsWith('lock-'))
}
