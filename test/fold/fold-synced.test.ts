import { expect, onTestFinished, test } from 'vitest'
import { type Fold, fold } from '../../adapters/fold/index.ts'
import type { SyncedStream } from '../../adapters/sync/index.ts'
import { HeadwaterError } from '../../src/index.ts'
import { Prng } from '../../src/runtime/random.ts'
import { openDevice, openServer, type Server } from '../sync/mirrored.ts'
import { NONCE, PendingEntries, TextReader } from '../sync/pending-entries.ts'
import { openLog } from './fold-support.ts'

/** Devices must not get the same id. */
const prng = new Prng(1)

/** A device with a synced stream of texts. */
async function openSynced(server: Server, storage?: Parameters<typeof openDevice>[1]) {
  const device = await openDevice(server, storage)
  return { ...device, synced: device.startSynced({ random: () => prng.next() }) }
}

function foldText(synced: SyncedStream, options: { readonly snapshotEvery?: number } = {}) {
  const calls = { count: 0 }
  const text: Fold<string> = fold(synced, {
    initial: '',
    reduce: (value, { body, isPending }) => {
      calls.count++
      return `${value}${isPending ? `(${body})` : body} `
    },
    version: 1,
    ...options,
  })
  onTestFinished(() => text.close())
  return { text, calls }
}

test('a fold of a synced stream shows what is pending, in its place among the records of others', async () => {
  const server = await openServer()
  const [one, other] = [await openSynced(server), await openSynced(server)]
  const [mine, theirs] = [foldText(one.synced).text, foldText(other.synced).text]
  await one.synced.append('a')
  await server.clock.advance('10s')
  expect([mine.value, theirs.value]).toEqual(['a ', 'a '])

  server.network.refuse()
  await one.synced.append('b')
  await other.synced.append('c')
  await server.clock.settle()
  expect([mine.value, theirs.value]).toEqual(['a (b) ', 'a (c) '])
  expect(mine.confirmedValue).toBe('a ')

  server.network.heal()
  await server.clock.advance('5m')
  expect(mine.value).toBe(theirs.value)
  expect(mine.value).toMatch(/^a (b c|c b) $/)
  expect(mine.value).toBe(mine.confirmedValue)
})

test('a fold of a synced stream opens offline with its snapshot', async () => {
  const server = await openServer()
  const { storage, ...device } = await openSynced(server)
  const first = foldText(device.synced, { snapshotEvery: 1 })
  for (const body of ['a', 'b', 'c']) await device.synced.append(body)
  await server.clock.advance('10s')
  expect(first.text.position).toBe(3)
  await first.text.close()
  await device.synced.close()
  await device.hw.close()

  server.network.refuse()
  const again = await openSynced(server, storage)
  const second = foldText(again.synced)
  expect(await second.text.loaded()).toBe('a b c ')
  expect(second.calls.count).toBe(0)
})

test('records that were trimmed on the server before the copy began end the fold', async () => {
  const server = await openServer()
  await server.stream.append(['a', 'b', 'c'])
  await server.stream.trim(2)
  await server.clock.advance('1h')
  const device = await openSynced(server)
  const { text } = foldText(device.synced)
  // Nothing is stored on this device.
  expect(await text.loaded()).toBe('')
  const reached = text.reached(1).catch((error: unknown) => error)
  await server.clock.advance('1m')
  expect(await reached).toMatchObject({ code: 'history_trimmed', seqNum: 2 })
})

test('a fold fails if its outbox can never be loaded', async () => {
  const { log, clock } = await openLog()
  const outbox = new PendingEntries()
  outbox.device = undefined
  const failure = new HeadwaterError('encryption_key_invalid', 'no key')
  outbox.loaded = () => Promise.reject(failure)
  const count = fold(new TextReader(log, outbox), { initial: 0, reduce: (sum) => sum + 1, version: 1 })
  let error: unknown
  count.value$.subscribe({ error: (reason) => (error = reason) })
  await clock.settle()
  expect(error).toBe(failure)
  expect(outbox.listeners).toBe(0)
})

test('a record that was trimmed before its outbox found it is reduced once by a later fold', async () => {
  const { log, clock } = await openLog()
  const outbox = new PendingEntries()
  outbox.add(4, 'mine')
  outbox.add(6, 'later')
  await log.append([{ body: 'mine', headers: [['headwater-origin', `device/4/${NONCE}`]] }, 'theirs'])
  const opened = async () => {
    const text = fold(new TextReader(log, outbox), {
      initial: '',
      reduce: (value, { body, isPending }) => `${value}${isPending ? `(${body})` : body} `,
      version: 1,
      snapshotEvery: 1,
    })
    onTestFinished(() => text.close())
    await text.loaded()
    await clock.settle()
    return text
  }
  const before = await opened()
  expect(before.value).toBe('mine theirs (later) ')
  await before.close()
  await log.trim(2)
  const text = await opened()
  expect(text.value).toBe('mine theirs (later) ')
  outbox.confirm(4, 2)
  await clock.settle()
  expect(text.value).toBe('mine theirs (later) ')
  // Another outbox uses the number again.
  outbox.device = 'other'
  outbox.add(4, 'new')
  expect((await opened()).value).toBe('mine theirs (new) (later) ')
})
