import { expect, onTestFinished, test } from 'vitest'
import { memory } from '../../adapters/storage/memory/index.ts'
import type { OutboxOptions } from '../../adapters/sync/outbox.ts'
import { faultyStorage } from '../../adapters/testing/index.ts'
import { open } from '../../src/index.ts'
import { openDevice, openServer } from './mirrored.ts'
import { bodies, startOn } from './outboxes.ts'

/** A server, and a device whose storage and network can fail. */
async function openFaulty() {
  const server = await openServer()
  const storage = faultyStorage(memory())
  const device = await openDevice(server, storage)
  const start = (options: OutboxOptions = {}) => startOn(device, options)
  return { ...device, storage, server, network: server.network, clock: server.clock, start }
}

test('appends under way count for the limits of an outbox', async () => {
  const { start, network } = await openFaulty()
  network.refuse()
  const box = start({ recordsMax: 3 })
  const outcomes = await Promise.allSettled(['a', 'b', 'c', 'd', 'e'].map((body) => box.append(body)))
  expect(outcomes.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
  ])
})

test('a record that the server has stored leaves its room to others at once', async () => {
  const { start } = await openFaulty()
  const box = start({ recordsMax: 1 })
  for (const body of ['a', 'b', 'c']) await (await box.append(body)).confirmed()
})

test('an append that is stored with the place of the last record fails for its caller alone', async () => {
  const { start, server, clock, storage } = await openFaulty()
  const box = start()
  await (await box.append('a')).confirmed()
  await clock.settle()
  await (await box.append('b')).confirmed()
  storage.failNext('append', { kind: 'io' })
  await expect(box.append('c')).rejects.toMatchObject({ code: 'storage' })
  await box.append('d')
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['a', 'b', 'd'])
  expect(box.isFlushed).toBe(true)
})

test('an outbox that is closed once a record was confirmed does not send it again', async () => {
  const { start, clock, network } = await openFaulty()
  const box = start()
  await (await box.append('a')).confirmed()
  await box.close()
  await clock.settle()
  network.refuse()
  const again = start()
  await clock.settle()
  expect(again.isFlushed).toBe(true)
})

test('an append that fails leaves its room to others', async () => {
  const { start, network, storage } = await openFaulty()
  network.refuse()
  const box = start({ recordsMax: 2 })
  await box.append('a')
  storage.failNext('append', { kind: 'quota' })
  await expect(box.append('b')).rejects.toMatchObject({ code: 'storage_full' })
  await box.append('c')
  await expect(box.append('d')).rejects.toMatchObject({ code: 'outbox_full' })
})

test('an outbox that is opened again is as full as it was', async () => {
  const { start, network } = await openFaulty()
  network.refuse()
  const box = start({ recordsMax: 2 })
  await box.append(['a', 'b'])
  await box.close()
  await expect(start({ recordsMax: 2 }).append('c')).rejects.toMatchObject({ code: 'outbox_full' })
})

test('records wait for as long as it takes, whatever the defaults of the local basin are', {
  tags: ['slow'],
}, async () => {
  const server = await openServer()
  const { clock, network } = server
  const { hw, startSynced } = await openDevice(server)
  await hw.createBasin('basin', {
    createStreamOnAppend: true,
    defaultStreamConfig: {
      retentionPolicy: { ageSeconds: 60 },
      timestamping: { mode: 'client-require' },
      deleteOnEmpty: { minAgeSeconds: 60 },
    },
  })
  network.refuse()
  const synced = startSynced()
  await synced.append('kept')
  await clock.advance('10m')
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['kept'])
})

test('an outbox needs no stream that the app has created', async () => {
  const server = await openServer()
  const { startSynced, remote } = await openDevice(server)
  const hw = await open({ storage: memory(), clock: server.clock, autoCreate: false })
  onTestFinished(() => hw.close())
  await hw.createBasin('basin')
  const synced = startSynced({}, { remote, local: hw.basin('basin').stream('stream') })
  const { confirmed } = await synced.append('x')
  await server.clock.advance('1m')
  expect(await confirmed()).toMatchObject({ start: { seqNum: 0 } })
})

test.each(['read', 'append'] as const)(
  'an outbox recovers when each %s failed as it was opened',
  async (operation) => {
    const { start, storage, clock, server } = await openFaulty()
    storage.fail(operation)
    const box = start()
    await clock.settle()
    await expect(box.append('too early')).rejects.toMatchObject({ code: 'storage' })
    storage.heal()
    await clock.advance('1m')
    expect(box.state.kind).toBe('idle')
    await box.append('x')
    await clock.settle()
    expect(await bodies(server)).toEqual(['x'])
  },
)

test('a record that could not be read back is confirmed when the storage recovers', async () => {
  const { start, storage, clock } = await openFaulty()
  const box = start()
  await box.append('first')
  await clock.settle()
  storage.fail('read')
  const appended = await box.append('second').catch(() => undefined)
  await clock.advance('5s')
  storage.heal()
  await clock.advance('2m')
  expect(await appended?.confirmed()).toMatchObject({ start: { seqNum: 1 } })
})

test('an outbox whose log was deleted is stopped', async () => {
  const { start, hw, clock } = await openFaulty()
  const box = start()
  await clock.settle()
  await hw.basin('basin').stream('.outbox/stream').delete()
  await clock.settle()
  expect(box.state).toMatchObject({ kind: 'stopped', error: { code: 'stream_deleted' } })
  await expect(box.append('y')).rejects.toMatchObject({ code: 'stream_not_found' })
})

test('a record whose log was deleted is not waited for', async () => {
  const { start, hw, network } = await openFaulty()
  const box = start()
  network.refuse()
  const { confirmed } = await box.append('x')
  const waiting = expect(confirmed()).rejects.toMatchObject({ code: 'stream_deleted' })
  await hw.basin('basin').stream('.outbox/stream').delete()
  await waiting
  await expect(confirmed()).rejects.toMatchObject({ code: 'stream_deleted' })
})

test('failed$ completes when the outbox is closed', async () => {
  const { start } = await openFaulty()
  const box = start()
  const emitted: unknown[] = []
  box.failed$.subscribe({ next: (failed) => emitted.push(failed), complete: () => emitted.push('complete') })
  await box.close()
  expect(emitted).toEqual([[], 'complete'])
})
