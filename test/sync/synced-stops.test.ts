import { expect, test } from 'vitest'
import { openBoth, until } from './mirrored.ts'
import { delayNext, holdableReads, isPost, isRead, numbered, watch } from './outboxes.ts'

/** A server with a stream of 20 records, and a device. */
async function openLong() {
  const both = await openBoth()
  await both.origin.append(numbered(0, 20))
  const texts = async () => {
    const records = await both.server.stream.read({}, { commands: false }).toArray()
    return records.map(({ body }) => body)
  }
  return { ...both, texts }
}

/** A device that has lost the network, and then appended a record. */
async function openOffline() {
  const device = await openLong()
  const synced = device.startSynced()
  await until(synced.mirror, 'live', device.clock)
  device.network.refuse()
  await device.server.restart()
  await until(synced.mirror, 'offline', device.clock)
  await synced.append('x')
  await device.clock.advance('1m')
  return { ...device, synced }
}

/** A device that has sent a record, and cannot read it from the server. */
async function openUncopied() {
  const device = await openLong()
  const { clock, network, remote, startSynced, texts } = device
  const reads = holdableReads(remote)
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  reads.hold()
  const methods = watch(network)
  const appended = await synced.append('x')
  await clock.advance('5s')
  expect((await texts()).at(-1)).toBe('x')
  return { ...device, ...appended, synced, methods, reads }
}

test('a record that is appended before the first connection to a trimmed stream is sent', async () => {
  const { origin, clock, network, startSynced, texts } = await openLong()
  await origin.trim(10)
  // Until then, reads over HTTP have the trimmed records.
  await clock.advance('1m')
  network.delay('300ms', { when: isRead })
  const synced = startSynced()
  await synced.append('x')
  await clock.advance('1m')
  expect(synced.outbox.failed).toEqual([])
  expect((await texts()).at(-1)).toBe('x')
})

test.each([
  ['the stream that was trimmed meanwhile', 'trimmed', [20, 40], numbered(30, 40)],
  ['another stream that is shorter', 'replaced', [100, 105], numbered(100, 105)],
  ['another stream that is longer', 'replaced', [100, 140], numbered(100, 140)],
] as const)('a record of a device that was offline is sent to %s', async (_, reason, [from, to], stored) => {
  const { synced, server, clock, network, texts } = await openOffline()
  if (reason === 'replaced') await server.stream.delete()
  await server.stream.append(numbered(from, to))
  if (reason === 'trimmed') await server.stream.trim(30)
  await clock.advance('1m')
  network.heal()
  network.delay('300ms', { when: isRead })
  expect(await until(synced.mirror, 'stopped', clock)).toMatchObject({ reason })
  network.heal()
  await synced.mirror.restart()
  await clock.advance('1m')
  expect(synced.outbox.failed).toEqual([])
  expect(await texts()).toEqual([...stored, 'x'])
})

test('a record that a stream created again has stored is not sent to it by another tab', async () => {
  const { startSynced, origin, server, clock, network, texts } = await openLong()
  const synced = startSynced()
  await until(synced.mirror, 'live', clock)
  const deliver = delayNext(server)
  await synced.append('x')
  await clock.settle()
  await origin.append('y')
  await clock.settle()
  await synced.close()
  await origin.delete()
  await server.stream.append(numbered(100, 120))
  await deliver()
  expect(await texts()).toEqual([...numbered(100, 120), 'x'])
  // The next tab must not send before its mirror has compared the copy of the first stream.
  network.delay('5s', { when: isRead })
  const next = startSynced()
  expect(await until(next.mirror, 'stopped', clock)).toMatchObject({ reason: 'replaced' })
  await clock.advance('1m')
  expect(await texts()).toEqual([...numbered(100, 120), 'x'])
  network.heal()
  await next.mirror.restart()
  await clock.advance('1m')
  expect(await texts()).toEqual([...numbered(100, 120), 'x'])
  expect(next.outbox.failed).toEqual([])
  expect(next.outbox.isFlushed).toBe(true)
})

test('an acknowledged record is not sent again if the server is lost before it is copied', {
  tags: ['slow'],
}, async () => {
  const { clock, network, server, methods, confirmed, reads } = await openUncopied()
  network.refuse({ when: (request) => !isPost(request) })
  await server.restart()
  await clock.advance('1m')
  network.heal()
  reads.release()
  await clock.advance('1m')
  expect(await confirmed()).toMatchObject({ start: { seqNum: 20 } })
  expect(methods.filter((method) => method === 'POST')).toHaveLength(1)
})
