import { open } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Storage } from '../../src/storage/contract.ts'

const KEY = 'AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8='
const LARGE = 'large '.repeat(20_000)
const TOKEN = {
  id: 'reader',
  scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['read'] },
} as const

/**
 * Writes what every fixture holds, by calls that all formats have: several batches, a large record, a trim, a
 * fencing token, a deleted stream, a configuration, encrypted records and an access token.
 */
export async function writeContents(storage: Storage): Promise<void> {
  const hw = await open({ storage })
  await hw.createBasin('shop')
  const basin = hw.basin('shop')
  await basin.createStream('orders', { timestamping: { uncapped: true } })
  const orders = basin.stream('orders')
  await orders.append(['trimmed', 'first'])
  await orders.append([{ body: new Uint8Array([0, 255]), headers: [['lang', 'en']], timestamp: 1000 }])
  for (let i = 0; i < 20; i++) await orders.append(`order ${i}`)
  await orders.append(LARGE)
  await orders.fence('writer-1')
  await orders.trim(1)
  await basin.createStream('gone')
  await basin.stream('gone').append('gone')
  await basin.stream('gone').delete()
  await hw.createBasin('vault', { streamCipher: 'aes-256-gcm' })
  await hw.basin('vault').createStream('secrets')
  await hw.basin('vault').stream('secrets', { encryptionKey: KEY }).append('secret')
  await hw.issueAccessToken(TOKEN)
  await hw.close()
}

/** Reads everything that {@link writeContents} wrote, and appends to it. */
export async function readContents(storage: Storage, clock: Clock): Promise<unknown> {
  await using hw = await open({ storage, clock })
  const orders = hw.basin('shop').stream('orders')
  const records = await orders.read({ seqNum: 0 }).toArray()
  const [secret] = await hw
    .basin('vault')
    .stream('secrets', { encryptionKey: KEY })
    .read({ seqNum: 0 })
    .toArray()
  const { start } = await orders.append('new', { fencingToken: 'writer-1' })
  return {
    basins: (await hw.listBasins()).items.map(({ name }) => name),
    streams: (await hw.basin('shop').listStreams()).items.map(({ name }) => name),
    uncapped: (await orders.config()).timestamping.uncapped,
    seqNums: [records[0]?.seqNum, records.length],
    first: records[0]?.body,
    large: records.some(({ body }) => body === LARGE),
    orders: records.filter(({ body }) => body.startsWith('order ')).length,
    headers: records.find(({ headers }) => headers.some(([name]) => name === 'lang'))?.headers,
    secret: secret?.body,
    tokens: (await hw.listAccessTokens()).items.map(({ id }) => id),
    appended: start.seqNum,
  }
}

/** What {@link readContents} resolves to. */
export const CONTENTS = {
  basins: ['shop', 'vault'],
  streams: ['orders'],
  uncapped: true,
  seqNums: [1, 25],
  first: 'first',
  large: true,
  orders: 20,
  headers: [['lang', 'en']],
  secret: 'secret',
  tokens: ['reader'],
  appended: 26,
}
