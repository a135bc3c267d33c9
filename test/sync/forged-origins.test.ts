import { expect, it } from 'vitest'
import { Prng } from '../../src/runtime/random.ts'
import { APPEND_HEADER } from '../../src/wire/headers.ts'
import { openBoth } from './mirrored.ts'
import { bodies, watch } from './outboxes.ts'

const ORIGIN = 'headwater-origin'

/** A stream that a device and another writer share. The device has sent one record. */
async function shareStream() {
  const both = await openBoth()
  const { clock, network, origin, startSynced, server } = both
  const headers = watch(network, ({ headers }) => headers.get(APPEND_HEADER))
  // Each append has another nonce.
  const prng = new Prng(1)
  const synced = startSynced({ random: () => prng.next() })
  const { confirmed } = await synced.append('first')
  await clock.advance('1m')
  await confirmed()
  const [first] = await origin.read().toArray()
  const [device, number, nonce] = first!.headers.find(([name]) => name === ORIGIN)![1].split('/')
  return {
    ...both,
    synced,
    device: device!,
    number: Number(number),
    nonce: nonce!,
    /** The ids of the producers of all requests. */
    producers: () =>
      new Set(headers.flatMap((header) => new URLSearchParams(header ?? '').get('producer') ?? [])),
    importantOnServer: async () => (await bodies(server)).filter((body) => body === 'important').length,
  }
}

it.each(['', 'the nonce of an earlier append'])(
  'an append is sent although another writer has claimed its origin, with %j',
  async (claim) => {
    const { clock, origin, synced, network, device, number, nonce, importantOnServer } = await shareStream()
    network.refuse()
    const seen: number[] = []
    const view = synced.view$.subscribe((records) => {
      seen.push([...records].filter(({ body }) => body === 'important').length)
    })
    const forged = Array.from({ length: 20 }, (_, index) => {
      const claimed = `${device}/${number + 1 + index}${claim === '' ? '' : `/${nonce}`}`
      return { body: 'forged', headers: [[ORIGIN, claimed]] as const }
    })
    await origin.append(forged)
    const { confirmed } = await synced.append('important')
    await clock.advance('1m')
    network.heal()
    await clock.advance('2m')
    expect(await confirmed()).toMatchObject({ start: { seqNum: 21 } })
    expect(await importantOnServer()).toBe(1)
    // Once it is there, it never disappears, and is never shown twice.
    expect(new Set(seen.slice(seen.indexOf(1)))).toEqual(new Set([1]))
    view.unsubscribe()
  },
)

it('another writer cannot derive the producer of a device, and so not fence it', async () => {
  const { clock, origin, synced, producers, device, importantOnServer } = await shareStream()
  const epoch = Number.MAX_SAFE_INTEGER
  await origin.append('forged', { producer: { id: device, epoch, seq: 0 } })
  const { confirmed } = await synced.append('important')
  await clock.advance('2m')
  await confirmed()
  expect(await importantOnServer()).toBe(1)
  expect(producers().size).toBe(1)
  const shared = JSON.stringify(await origin.read().toArray())
  for (const id of producers()) expect(shared).not.toContain(id)
})
