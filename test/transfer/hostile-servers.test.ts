import { create, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import type { ConnectOptions } from '../../adapters/client/options.ts'
import { copy } from '../../adapters/transfer/copy.ts'
import { EVERYTHING, Service, TransferError } from '../../adapters/transfer/service.ts'
import { utf8 } from '../../src/model/bytes.ts'
import { ReadBatchSchema } from '../wire/gen/records_pb.ts'
import { clientOf, type Endpoint, NOW, openEndpoint } from './support.ts'

type Fetch = NonNullable<ConnectOptions['fetch']>

const RECORDS = 2_500
const MIB = 1024 * 1024

const PROTOBUF = { headers: { 'content-type': 'application/protobuf' } }

/** A server with one stream, whose second and later responses with records a test replaces. */
async function hostileSource(respond: (send: () => Promise<Response>, seqNum: number) => Promise<Response>) {
  const source: Endpoint = await openEndpoint({
    wrapFetch: (fetch: Fetch) => (request) => {
      const { pathname, searchParams } = new URL(request.url)
      const isRead = pathname.endsWith('/records') && request.method === 'GET'
      const seqNum = Number(searchParams.get('seq_num'))
      return !isRead || seqNum === 0 ? fetch(request) : respond(() => fetch(request), seqNum)
    },
  })
  await source.hw.createBasin('basin-a')
  await source.basin.createStream('s')
  const stream = source.basin.stream('s')
  for (let from = 0; from < RECORDS; from += 500) {
    await stream.append(Array.from({ length: 500 }, (_, i) => `record ${from + i}`))
  }
  return source
}

interface TestRecord {
  readonly seqNum: number
  readonly timestamp?: number
}

function batch(records: readonly TestRecord[]): Response {
  const message = create(ReadBatchSchema, {
    records: records.map(({ seqNum, timestamp = 0 }) => ({
      seqNum: BigInt(seqNum),
      timestamp: BigInt(timestamp),
      headers: [],
      body: utf8('x'),
    })),
  })
  return new Response(toBinary(ReadBatchSchema, message) as Uint8Array<ArrayBuffer>, PROTOBUF)
}

/** A body without an end, which counts what is read of it. */
function endless(chunk: Uint8Array) {
  const counts = { bytes: 0, isCancelled: false }
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        counts.bytes += chunk.length
        controller.enqueue(chunk)
      },
      cancel() {
        counts.isCancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { body, counts }
}

/** Copies into an empty engine. Resolves to the error, and to the bodies that the target has. */
async function copied(source: Endpoint) {
  const target = await openEndpoint({ kind: 'directory' })
  const from = new Service(clientOf({ fetch: source.fetch }))
  const options = { filter: EVERYTHING, now: () => NOW, resume: false }
  const error = await copy(from, target.service, options).then(
    () => undefined,
    (error: unknown) => error,
  )
  const bodies: string[] = []
  for await (const { seqNum, body } of target.stream('s').read()) {
    expect(seqNum).toBe(bodies.length)
    bodies.push(body)
  }
  return { error, bodies, target }
}

function expectPrefix(bodies: readonly string[]): void {
  expect(bodies.length).toBeLessThan(RECORDS)
  expect(bodies).toEqual(bodies.map((_, i) => `record ${i}`))
}

describe('a copy from a server that misbehaves ends with an error, and the target has a prefix', () => {
  it.each<[string, (seqNum: number) => Response, RegExp]>([
    [
      'records out of order',
      (seqNum) => batch([{ seqNum: seqNum + 1 }, { seqNum }]),
      /records are out of order/,
    ],
    ['the batch before, again', (seqNum) => batch([{ seqNum: seqNum - 1 }]), /records are out of order/],
    ['no records', () => batch([]), /no records/],
    [
      'half of a message',
      () => new Response(Uint8Array.of(0x0a, 0x20, 0x01), PROTOBUF),
      /unexpected response/,
    ],
    ['a page of HTML', () => new Response('<html>'), /unexpected response/],
  ])('%s', async (_, respond, message) => {
    const source = await hostileSource(async (_send, seqNum) => respond(seqNum))
    const { error, bodies } = await copied(source)
    expect(error).toBeInstanceOf(TransferError)
    expect(String(error)).toMatch(message)
    expect(String(error).length).toBeLessThan(1_000)
    expectPrefix(bodies)
  })

  it.each<[string, Uint8Array, ResponseInit]>([
    ['a body', new Uint8Array(MIB), PROTOBUF],
    ['an error', utf8('"'.repeat(MIB)), { status: 400, headers: { 'content-type': 'application/json' } }],
  ])('%s that never ends, of which at most 18 MiB are read', async (_, chunk, init) => {
    const { body, counts } = endless(chunk)
    const source = await hostileSource(async () => new Response(body, init))
    const { error, bodies } = await copied(source)
    expect(String(error)).toContain('its body is too long')
    expect(counts.bytes).toBeLessThanOrEqual(18 * MIB)
    expect(counts.isCancelled).toBe(true)
    expectPrefix(bodies)
  })

  it.each([0, Number.MAX_SAFE_INTEGER])('records with gaps where it has none, at %i', async (timestamp) => {
    const source = await hostileSource(async (send, seqNum) =>
      seqNum === 1_000 ? batch([{ seqNum: 1_500, timestamp }]) : send(),
    )
    const { error, bodies } = await copied(source)
    expect(error).toBeInstanceOf(TransferError)
    expectPrefix(bodies)
  })

  it('a tail that lies: below the records of the export', async () => {
    const source = await hostileSource(async () =>
      Response.json({ tail: { seq_num: 3, timestamp: 0 } }, { status: 416 }),
    )
    const { error, bodies } = await copied(source)
    expect(error).toBeInstanceOf(TransferError)
    expectPrefix(bodies)
  })
})

it('a copy that ended with an error is completed from a server that behaves', async () => {
  let isHostile = true
  const source = await hostileSource(async (send, seqNum) =>
    isHostile ? batch([{ seqNum: seqNum + 1 }, { seqNum }]) : send(),
  )
  const { target, error } = await copied(source)
  expect(error).toBeInstanceOf(TransferError)
  isHostile = false
  const from = new Service(clientOf({ fetch: source.fetch }))
  await copy(from, target.service, { filter: EVERYTHING, now: () => NOW, resume: true })
  const bodies = await target.stream('s').read().toArray()
  expect(bodies.map(({ body }) => body)).toEqual(Array.from({ length: RECORDS }, (_, i) => `record ${i}`))
})
