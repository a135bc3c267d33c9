import { expect, test } from 'vitest'
import { HeadwaterError } from '../../src/index.ts'
import { textOf } from '../../src/model/bytes.ts'
import { splitting } from '../storage/wrapped-storage.ts'
import { openDevice, openServer } from './mirrored.ts'
import { bodies, isPost, numbered, openOutbox, startOn } from './outboxes.ts'

test('a refused batch is parked with the error, and those behind it wait', async () => {
  const { box, network, clock, server } = await openOutbox()
  const seen: number[] = []
  box.failed$.subscribe((failed) => seen.push(failed.length))
  const refuse = () => network.respond(403, { code: 'permission_denied', when: isPost })
  refuse()
  const first = await box.append('first')
  const second = await box.append('second')
  await clock.advance('1m')
  expect(box.failed).toMatchObject([{ number: first.number, error: { code: 'permission_denied' } }])
  expect(seen).toEqual([0, 1])
  await box.flush()
  network.heal()
  await clock.advance('1m')
  expect(await bodies(server)).toEqual([])
  await box.retry(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['first', 'second'])
  expect(await second.confirmed()).toMatchObject({ start: { seqNum: 1 } })
})

test('a refused batch can be discarded', async () => {
  const { box, network, clock, server } = await openOutbox()
  network.respond(403, { code: 'permission_denied', when: isPost })
  const first = await box.append('first')
  await box.append('second')
  await clock.advance('1m')
  network.heal()
  await box.discard(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second'])
  await expect(first.confirmed()).rejects.toMatchObject({ code: 'permission_denied' })
  await expect(box.retry(first.number)).rejects.toMatchObject({ code: 'invalid', field: 'number' })
})

test('batches behind a refused one are sent if the app says so', async () => {
  const { box, network, clock, server } = await openOutbox({ afterRefusal: 'continue' })
  network.respond(422, { code: 'invalid', when: isPost, nth: 1 })
  network.respond(422, { code: 'invalid', when: isPost, nth: 2 })
  const first = await box.append('first')
  await box.append('second')
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second'])
  await box.retry(first.number)
  await clock.advance('1m')
  expect(await bodies(server)).toEqual(['second', 'first'])
})

test('a refused batch among many is found by batches that grow again', { tags: ['slow'] }, async () => {
  const { box, network, clock, server, remote } = await openOutbox({ afterRefusal: 'continue' })
  const append = remote.append.bind(remote)
  const sizes: number[] = []
  remote.append = async (records, options) => {
    const sent = records as readonly { readonly body: Uint8Array }[]
    sizes.push(sent.length)
    if (sent.some(({ body }) => textOf(body) === '50')) throw new HeadwaterError('invalid', 'refused')
    return append(records, options)
  }
  network.refuse()
  for (const body of numbered(0, 200)) await box.append(body)
  await clock.advance('1m')
  network.heal()
  sizes.length = 0
  await clock.advance('2m')
  expect(box.failed.map(({ number }) => number)).toHaveLength(1)
  expect(await bodies(server)).toEqual(numbered(0, 200).filter((body) => body !== '50'))
  expect(sizes.length).toBeLessThan(30)
  expect(Math.max(...sizes.slice(1))).toBeGreaterThan(40)
})

test('a server that refuses everything is not asked more than once for each batch', {
  tags: ['slow'],
}, async () => {
  const { box, network, clock } = await openOutbox({ afterRefusal: 'continue' })
  network.refuse()
  for (const body of numbered(0, 50)) await box.append(body)
  await clock.advance('1m')
  network.heal()
  let requests = 0
  const count = (request: Request) => {
    if (isPost(request)) requests++
    return isPost(request)
  }
  network.respond(403, { code: 'permission_denied', when: count })
  await clock.advance('2m')
  expect(box.failed).toHaveLength(50)
  expect(requests).toBeLessThanOrEqual(52)
})

test('retry and discard work right after the outbox is opened', async () => {
  const { box, hw, remote, network, clock, server } = await openOutbox({ afterRefusal: 'continue' })
  network.respond(422, { code: 'invalid', when: isPost })
  const [again, discarded] = [await box.append('again'), await box.append('discarded')]
  await clock.advance('1m')
  expect(box.failed).toHaveLength(2)
  await box.close()
  network.heal()
  const later = startOn({ hw, remote }, { afterRefusal: 'continue' })
  await Promise.all([later.retry(again.number), later.discard(discarded.number)])
  await clock.advance('1m')
  expect(later.failed).toEqual([])
  expect(await bodies(server)).toEqual(['again'])
})

test('a batch that was discarded does not appear as parked while the outbox is loaded', async () => {
  const server = await openServer()
  const storage = splitting()
  const device = await openDevice(server, storage)
  server.network.respond(422, { code: 'invalid', when: isPost })
  const box = startOn(device)
  const { number } = await box.append('x'.repeat(900_000))
  await server.clock.advance('1m')
  // Read in another batch than the parked one.
  await box.append('y'.repeat(900_000))
  await box.discard(number)
  await box.close()
  const seen: number[] = []
  const later = startOn(device)
  later.failed$.subscribe((failed) => seen.push(...failed.map((each) => each.number)))
  await later.log.loaded()
  expect(seen).not.toContain(number)
})
