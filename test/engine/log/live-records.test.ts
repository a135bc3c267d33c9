import { expect, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { open } from '../../../src/index.ts'
import type { RecordInput } from '../../../src/model/append-input.ts'
import { closeRecord, fenceRecord, trimRecord } from '../../../src/model/command.ts'

it.each<[string, () => RecordInput[]]>([
  ['short texts', () => ['a', '', 'é']],
  ['long texts', () => ['x'.repeat(10_000), 'y'.repeat(100)]],
  ['bytes', () => [new Uint8Array([65, 66]), new Uint8Array(0)]],
  ['headers and a timestamp', () => [{ body: 'a', headers: [['n', 'v']], timestamp: 5 }, { body: 'b' }]],
  ['commands', () => [fenceRecord('token'), trimRecord(0), closeRecord()]],
])('a follower gets the records as they are stored: %s', async (_, inputs) => {
  await using hw = await open({ storage: memory() })
  await hw.createBasin('my-basin')
  await hw.basin('my-basin').createStream('my-stream')
  const stream = hw.basin('my-basin').stream('my-stream')
  const cursor = (await stream.openCursor({ seqNum: 0, waitMs: 60_000 }, { heartbeats: false }))!
  const live = cursor.next()
  await new Promise((resolve) => setTimeout(resolve))
  const given = inputs()
  const appending = stream.append(given)
  // What the caller does with its bytes and the memory of other appends changes nothing.
  for (const input of given) if (input instanceof Uint8Array) input.fill(0)
  void hw.basin('my-basin').stream('other').append('z'.repeat(100))
  await appending
  const event = await live
  cursor.close()
  if (event?.kind !== 'batch') throw new Error('no batch')
  const { records } = await stream.readUnary({ seqNum: 0 }, {})
  expect(event.batch.records).toStrictEqual(records)
})
