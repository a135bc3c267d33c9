import { expect, it } from 'vitest'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { type Endpoint, exported, imported, KEY, openEndpoint, withStreams } from './support.ts'

/** What a server cannot take as it is. */
const REFUSED: readonly [string, (source: Endpoint) => Promise<unknown>, string][] = [
  [
    'a stream whose first records no longer exist',
    ({ stream }) => stream('s').append(['a', trimRecord(1), 'b']),
    'stream s of basin basin-a begins at sequence number 1, and streams of a server begin at 0',
  ],
  [
    'a plain stream of an encrypted basin',
    ({ basin }) => basin.reconfigure({ streamCipher: 'aes-256-gcm' }),
    'stream s of basin basin-a has the cipher none, but its basin gives new streams aes-256-gcm',
  ],
]

it.each(REFUSED)('a server refuses %s, and a directory takes it', async (_, prepare, message) => {
  const source = await withStreams(['s'])
  await prepare(source)
  const text = await exported(source.service)
  const server = await openEndpoint()
  await expect(imported(server.service, text)).rejects.toThrow(message)
  expect(server.requests.filter((request) => request.startsWith('POST'))).toEqual([])
  const directory = await openEndpoint({ kind: 'directory' })
  await imported(directory.service, text)
  expect(await directory.stream('s').checkTail()).toEqual(await source.stream('s').checkTail())
})

it('no target gets an encrypted stream as plain text', async () => {
  const source = await withStreams(['s'], { config: { streamCipher: 'aes-256-gcm' } })
  await source.basin.stream('s', { encryptionKey: KEY }).append('secret')
  await source.basin.reconfigure({ streamCipher: null })
  const text = await exported(source.service)
  const server = await openEndpoint()
  await expect(imported(server.service, text)).rejects.toThrow('has the cipher aes-256-gcm, but')
  expect((await server.stream('s').checkTail()).seqNum).toBe(0)
})

it.each(['server', 'directory'] as const)(
  'a %s refuses a stream without the records in between, unless it may renumber them',
  async (kind) => {
    const source = await withStreams(['s'])
    const stream = source.stream('s')
    await stream.append(['a', 'b'])
    await stream.reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    await stream.append(['gone', 'gone'])
    await stream.reconfigure({ retentionPolicy: 'infinite' })
    await stream.append(['c'])
    await source.clock.advance('5s')
    const text = await exported(source.service)
    const target = await openEndpoint({ kind })
    await expect(imported(target.service, text)).rejects.toThrow(
      'stream s of basin basin-a: the records 2 to 3 are missing; import it again with `--renumber`',
    )
    await target.stream('s').delete()
    await imported(target.service, text, { renumber: true })
    expect((await target.stream('s').readBatch()).records).toMatchObject([
      { seqNum: 0, body: 'a' },
      { seqNum: 1, body: 'b' },
      { seqNum: 2, body: 'c' },
    ])
  },
)

it.each(['server', 'directory'] as const)('renumbering for a %s keeps the fencing token', async (kind) => {
  const source = await withStreams(['s', 'whole'])
  await source.stream('s').append([fenceRecord('me'), 'a', trimRecord(1), 'b'])
  await source.stream('whole').append([fenceRecord('me'), trimRecord(2)])
  const text = await exported(source.service)
  const target = await openEndpoint({ kind })
  const part = text.slice(0, text.indexOf('{"stream_end":"s"'))
  await expect(imported(target.service, part, { renumber: true })).rejects.toThrow('the input is truncated')
  await imported(target.service, text, { renumber: true, resume: true })
  for (const name of ['s', 'whole']) {
    await expect(target.stream(name).append('x', { fencingToken: '' })).rejects.toMatchObject({
      fencingToken: 'me',
    })
  }
  const records = await target.stream('s').read().toArray()
  expect(records.map(({ body, command }) => command?.kind ?? body)).toEqual(['fence', 'a', 'b'])
})
