import { expect, it, onTestFinished } from 'vitest'
import { connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { syncedStream } from '../../adapters/sync/index.ts'
import { open } from '../../src/index.ts'
import { testClock } from '../support/index.ts'

const HEADER = 'headwater-origin'

/** A stream that a device and another writer share. The network of the device can be cut. */
async function shareStream() {
  const clock = testClock({ now: 1_000_000 })
  const server = await open({ storage: memory(), clock })
  const hw = await open({ storage: memory(), clock })
  await server.createBasin('basin', { createStreamOnAppend: true })
  const stream = server.basin('basin').stream('chat')
  const handle = createHandler(server, { auth: 'none' })
  const network = { isUp: true }
  const producers = new Set<string>()
  const remote = await connect({
    url: 'http://localhost',
    fetch: async (request) => {
      const id = new URLSearchParams(request.headers.get('headwater-append') ?? '').get('producer')
      if (id !== null) producers.add(id)
      if (!network.isUp) throw new TypeError('offline')
      return handle(request)
    },
    clock,
    retries: 0,
    random: () => 0.5,
  })
  const synced = syncedStream(remote.basin('basin').stream('chat'), hw.basin('basin').stream('chat'))
  onTestFinished(async () => {
    await synced.close()
    await Promise.all([remote.close(), hw.close()])
    await server.close()
  })
  const first = await synced.append('first')
  await clock.advance('1m')
  await first.confirmed()
  const records = await stream.read().toArray()
  const [device, number, nonce] = records[0]!.headers.find(([name]) => name === HEADER)![1].split('/')
  const importantOnServer = async () =>
    (await stream.read().toArray()).filter(({ body }) => body === 'important').length
  return {
    clock,
    stream,
    synced,
    network,
    producers,
    device: device!,
    number: Number(number),
    nonce: nonce!,
    importantOnServer,
  }
}

it.each(['', 'the nonce of an earlier append'])(
  'an append is sent although another writer has claimed its origin, with %j',
  async (claim) => {
    const { clock, stream, synced, network, device, number, nonce, importantOnServer } = await shareStream()
    network.isUp = false
    const seen: number[] = []
    const view = synced.view$.subscribe((records) => {
      seen.push([...records].filter(({ body }) => body === 'important').length)
    })
    const forged = Array.from({ length: 20 }, (_, index) => {
      const origin = `${device}/${number + 1 + index}${claim === '' ? '' : `/${nonce}`}`
      return { body: 'forged', headers: [[HEADER, origin]] as const }
    })
    await stream.append(forged)
    const { confirmed } = await synced.append('important')
    await clock.advance('1m')
    network.isUp = true
    await clock.advance('2m')
    expect(await confirmed()).toMatchObject({ start: { seqNum: 21 } })
    expect(await importantOnServer()).toBe(1)
    // Once it is there, it never disappears, and is never shown twice.
    expect(new Set(seen.slice(seen.indexOf(1)))).toEqual(new Set([1]))
    view.unsubscribe()
  },
)

it('another writer cannot derive the producer of a device, and so not fence it', async () => {
  const { clock, stream, synced, producers, device, importantOnServer } = await shareStream()
  const epoch = Number.MAX_SAFE_INTEGER
  await stream.append('forged', { producer: { id: device, epoch, seq: 0 } })
  const { confirmed } = await synced.append('important')
  await clock.advance('2m')
  await confirmed()
  expect(await importantOnServer()).toBe(1)
  expect(producers.size).toBe(1)
  const shared = JSON.stringify(await stream.read().toArray())
  for (const id of producers) expect(shared).not.toContain(id)
})
