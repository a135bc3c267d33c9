import { Readable } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { appendFrame } from '../../adapters/cli/append-records.ts'
import { Client } from '../../adapters/cli/client.ts'
import type { CliContext } from '../../adapters/cli/context.ts'
import { serverWriter } from '../../adapters/cli/server-writer.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { serve } from '../../adapters/node/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { virtualClock } from '../../adapters/testing/index.ts'
import { fenceRecord, open, systemClock } from '../../src/index.ts'
import { encodeTerminalFrame, FrameDecoder } from '../../src/wire/frame.ts'
import { deferred } from '../support/deferred.ts'
import { run } from './run.ts'

const URL = 'http://127.0.0.1:8787'
const REQUEST_BYTES_MAX = 1024 * 1024

/** A request to append that has reached the server. */
interface Arrival {
  readonly bytes: number
  readonly batches: number
}

type Respond = (send: () => Promise<Response>, index: number) => Promise<Response>

/**
 * A server with the stream `app/s`. The test decides what becomes of each request to append, counted from 0,
 * and of its response.
 */
async function server(respond: Respond = (send) => send()) {
  const hw = await open({ storage: memory() })
  onTestFinished(() => hw.close())
  await hw.createBasin('app')
  await hw.basin('app').createStream('s')
  const stream = hw.basin('app').stream('s')
  const handler = createHandler(hw, { auth: 'none' })
  const arrivals: Arrival[] = []
  const inFlight = { now: 0, max: 0 }
  const fetch: CliContext['fetch'] = async (request) => {
    if (request.method !== 'POST') return handler(request)
    const body = new Uint8Array(await request.clone().arrayBuffer())
    arrivals.push({ bytes: body.length, batches: [...new FrameDecoder().decode(body)].length })
    inFlight.max = Math.max(inFlight.max, ++inFlight.now)
    try {
      return await respond(() => handler(request), arrivals.length - 1)
    } finally {
      inFlight.now--
    }
  }
  const records = async () => {
    const { seqNum } = await stream.checkTail()
    if (seqNum === 0) return []
    return (await stream.readBatch({ seqNum: 0, count: seqNum })).records.map(({ body }) => body)
  }
  return { hw, stream, fetch, arrivals, inFlight, records }
}

/** Runs `append app/s` on chunks that arrive one after the other. */
function append(chunks: Iterable<string>, fetch: CliContext['fetch'], ...options: string[]) {
  const input = Readable.from(encoded(chunks))
  const hasEnded = new Promise<void>((resolve) => input.once('end', resolve))
  return { ...run(['append', 'app/s', ...options], { fetch, input: () => input }), hasEnded }
}

function* encoded(chunks: Iterable<string>) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `line ${i}\n`)
}

describe('append to a server', () => {
  it('sends all batches that have arrived during a request with the next one, in order', async () => {
    let input = Promise.resolve()
    const { fetch, arrivals, records } = await server(async (send, index) => {
      if (index === 0) await input
      return send()
    })
    const lines = numbered(60)
    const writer = append(lines, fetch)
    input = writer.hasEnded
    expect(await writer.exitCode).toBe(0)
    expect(writer.err).toEqual(['Appended 60 records to app/s: sequence number 0 to 59'])
    expect(arrivals.map(({ batches }) => batches)).toEqual([1, 59])
    expect((await records()).map((body) => `${body}\n`)).toEqual(lines)
  })

  it('sends one request at a time, of at most 1 MiB, and reads no further ahead', async () => {
    const line = `${'x'.repeat(99_999)}\n`
    let read = 0
    function* lines() {
      for (let i = 0; i < 200; i++) {
        read += line.length
        yield line
      }
    }
    const ahead: number[] = []
    let sent = 0
    const { fetch, arrivals, inFlight } = await server(async (send, index) => {
      sent += arrivals[index]!.bytes
      // Time for the input to be read as far as it is read at all.
      for (let i = 0; i < 50; i++) await new Promise((resolve) => setImmediate(resolve))
      ahead.push(read - sent)
      return send()
    })
    const writer = append(lines(), fetch)
    expect(await writer.exitCode).toBe(0)
    expect(writer.err).toEqual(['Appended 200 records to app/s: sequence number 0 to 199'])
    expect(inFlight.max).toBe(1)
    expect(Math.max(...arrivals.map(({ bytes }) => bytes))).toBeLessThanOrEqual(REQUEST_BYTES_MAX)
    expect(arrivals.length).toBeLessThan(30)
    // The next request, and what Node reads of a stream in advance.
    expect(Math.max(...ahead)).toBeLessThan(4 * REQUEST_BYTES_MAX)
  })

  it('sends at most 1,000 batches in a request', async () => {
    const written = deferred()
    const { fetch, arrivals, stream } = await server(async (send, index) => {
      if (index === 0) await written.promise
      return send()
    })
    const { signal } = new AbortController()
    const client = new Client({ fetch, url: URL, name: URL, clock: systemClock, signal })
    const events = { onAck() {}, onFailure() {} }
    const writer = serverWriter(client, { basin: 'app', stream: 's' }, {}, events)
    const batch = { records: ['x'], count: 1, bytes: 9 }
    for (let batches = 0; batches <= 1_000; batches++) await writer.write(batch)
    const waiting = writer.write(batch)
    written.resolve()
    await waiting
    await writer.close()
    expect(arrivals.map(({ batches }) => batches)).toEqual([1, 1_000, 1])
    expect(await stream.checkTail()).toMatchObject({ seqNum: 1_002 })
  })

  it('sends a batch that is longer than 1 MiB alone', async () => {
    const { fetch, arrivals, stream } = await server()
    // Encoded, the headers are longer than they are metered.
    const long = `${JSON.stringify({ headers: Array.from({ length: 140_000 }, () => ['n', 'v']) })}\n`
    const writer = append([long, '{"body":"x"}\n', long], fetch, '--json')
    expect(await writer.exitCode).toBe(0)
    expect(arrivals.map(({ bytes, batches }) => [bytes > REQUEST_BYTES_MAX, batches])).toEqual([
      [true, 1],
      [false, 1],
      [true, 1],
    ])
    expect(await stream.checkTail()).toMatchObject({ seqNum: 3 })
  })

  it('rejects a batch that no frame can hold', () => {
    const headers = new Array(262_144).fill([new Uint8Array(1), new Uint8Array(1)])
    expect(() => appendFrame([{ headers }], {})).toThrow('the headers of a batch are too long')
  })

  it('reports a batch that fails in the middle of a request, and stores nothing after it', async () => {
    let input = Promise.resolve()
    const { hw, fetch, records } = await server(async (send, index) => {
      if (index === 0) await input
      return send()
    })
    await hw
      .basin('app')
      .stream('s')
      .reconfigure({ timestamping: { mode: 'client-require' } })
    const record = (body: string, timestamp?: number) => `${JSON.stringify({ body, timestamp })}\n`
    const lines = [record('a', 1), record('b', 2), record('c', 3), record('d'), record('e', 5)]
    const writer = append(lines, fetch, '--json')
    input = writer.hasEnded
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      'Appended 3 records to app/s: sequence number 0 to 2, before it stopped',
      expect.stringMatching(/timestamp.*\(invalid\)$/),
    ])
    expect(await records()).toEqual(['a', 'b', 'c'])
  })

  it('does not repeat a request that was stored before the connection broke', async () => {
    let input = Promise.resolve()
    const { fetch, arrivals, records } = await server(async (send, index) => {
      if (index === 0) {
        await input
        return send()
      }
      const response = await send()
      await response.arrayBuffer()
      throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
    })
    const writer = append(numbered(5), fetch)
    input = writer.hasEnded
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      'Appended 1 record to app/s: sequence number 0, before it stopped',
      `headwater: cannot reach ${URL}: read ECONNRESET; the request may have taken effect`,
    ])
    expect(arrivals.map(({ batches }) => batches)).toEqual([1, 4])
    expect(await records()).toEqual(['line 0', 'line 1', 'line 2', 'line 3', 'line 4'])
  })

  /** Answers the second request with some of its acks, followed by an error or the end. */
  function withAcks(count: number, error?: Error) {
    const held = { input: Promise.resolve() }
    const respond: Respond = async (send, index) => {
      if (index === 0) {
        await held.input
        return send()
      }
      const response = await send()
      const acks = new Uint8Array(await response.arrayBuffer())
      const frameLength = 4 + [...new FrameDecoder().decode(acks)].map(payloadLength)[0]!
      const body = new ReadableStream<Uint8Array>({
        pull(control) {
          if (count > 0) control.enqueue(acks.subarray(0, count * frameLength))
          count = 0
          if (control.desiredSize! > 0) error ? control.error(error) : control.close()
        },
      })
      return new Response(body, response)
    }
    return { held, respond }
  }

  it.each([
    [
      'breaks',
      new TypeError('terminated', { cause: new Error('other side closed') }),
      `cannot reach ${URL}: other side closed; the request may have taken effect`,
    ],
    ['ends', undefined, 'unexpected response: 2 acks of 4 batches; others may have been stored'],
  ])('counts exactly the batches whose acks arrive before the response %s', async (_, error, message) => {
    const { held, respond } = withAcks(2, error)
    const { fetch, arrivals, records } = await server(respond)
    const writer = append(numbered(5), fetch)
    held.input = writer.hasEnded
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      'Appended 3 records to app/s: sequence number 0 to 2, before it stopped',
      `headwater: ${message}`,
    ])
    expect(arrivals).toHaveLength(2)
    expect(await records()).toHaveLength(5)
  })

  it.each([
    [503, 'unavailable', '; the request may have taken effect'],
    [401, 'authn', '; the request may have taken effect'],
    [412, 'fencing_token_mismatch', ''],
  ])(
    'states whether records may have been stored when a request ends with %i',
    async (status, code, doubt) => {
      const body = JSON.stringify({ code, message: 'no', fencing_token_mismatch: 'other' })
      const terminal = encodeTerminalFrame(status, body) as Uint8Array<ArrayBuffer>
      const { fetch } = await server(async () => new Response(terminal))
      const writer = append(numbered(2), fetch)
      expect(await writer.exitCode).toBe(1)
      expect(writer.err.at(-1)).toMatch(new RegExp(`^headwater: .* \\(${code}\\)${doubt}$`))
    },
  )

  it('succeeds if the response breaks after the last ack', async () => {
    const { held, respond } = withAcks(4, new TypeError('terminated'))
    const { fetch } = await server(respond)
    const writer = append(numbered(5), fetch)
    held.input = writer.hasEnded
    expect(await writer.exitCode).toBe(0)
    expect(writer.err).toEqual(['Appended 5 records to app/s: sequence number 0 to 4'])
  })

  it.each([
    ['has no ack', new Response(new Uint8Array([0, 0, 2, 0, 255])), 'invalid ack'],
    ['ends inside of a frame', new Response(new Uint8Array([0, 0, 2])), '.*frame.*'],
    ['is JSON', Response.json({}), 'its body is not what the API specifies'],
    ['is from a proxy without its server', new Response('<html>', { status: 502 }), 'its status is 502'],
    ['is from a proxy that gave up', new Response('<html>', { status: 504 }), 'its status is 504'],
  ])('states that records may have been stored if the response %s', async (_, response, problem) => {
    const { fetch, arrivals } = await server(async () => response)
    const writer = append(['a line\n'], fetch)
    expect(await writer.exitCode).toBe(1)
    const message = `^headwater: unexpected response from ${URL}: ${problem}; the request may have taken effect$`
    expect(writer.err).toEqual([expect.stringMatching(new RegExp(message))])
    expect(arrivals).toHaveLength(1)
  })

  it('does not state that records may have been stored if a proxy rejects the request', async () => {
    const { fetch } = await server(async () => new Response('<html>', { status: 413 }))
    const writer = append(['a line\n'], fetch)
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([`headwater: unexpected response from ${URL}: its status is 413`])
  })

  it('stops reading an input that has not ended when a request fails', async () => {
    const { fetch } = await server(async () => {
      throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
    })
    const input = new Readable({ read() {} })
    input.push('one\n')
    const { exitCode, err } = run(['append', 'app/s'], { fetch, input: () => input })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([
      `headwater: cannot reach ${URL}: read ECONNRESET; the request may have taken effect`,
    ])
  })

  it('waits longer for the response to a long request, which takes time to send', async () => {
    const clock = virtualClock()
    const { fetch, arrivals } = await server(() => new Promise<Response>(() => {}))
    const input = () => Readable.from([Buffer.alloc(800_000, 'x')])
    const { exitCode, err } = run(['append', 'app/s'], { fetch, clock, input })
    await vi.waitUntil(() => arrivals.length === 1)
    await clock.advance('79s')
    expect(err).toEqual([])
    await clock.advance('2s')
    expect(await exitCode).toBe(1)
    expect(err[0]).toMatch(/: no response within 80 seconds; the request may have taken effect$/)
  })

  it('gives a long request the same time if its first ack arrives early', async () => {
    const clock = virtualClock()
    const [firstAckRead, uploaded] = [deferred(), deferred()]
    let input = Promise.resolve()
    const { fetch, arrivals } = await server(async (send, index) => {
      if (index === 0) {
        await input
        return send()
      }
      const response = await send()
      const acks = new Uint8Array(await response.arrayBuffer())
      const firstLength = acks.length / arrivals[index]!.batches
      let pulls = 0
      const pull = async (control: ReadableStreamDefaultController<Uint8Array>) => {
        if (pulls++ === 0) return control.enqueue(acks.subarray(0, firstLength))
        firstAckRead.resolve()
        await uploaded.promise
        control.enqueue(acks.subarray(firstLength))
        control.close()
      }
      return new Response(new ReadableStream({ pull }, { highWaterMark: 0 }), response)
    })
    const lines = Array.from({ length: 10 }, () => `${'x'.repeat(99_999)}\n`)
    const source = Readable.from(encoded(lines))
    input = new Promise((resolve) => source.once('end', resolve))
    const { exitCode, err } = run(['append', 'app/s'], { fetch, clock, input: () => source })
    await firstAckRead.promise
    await clock.advance('60s')
    uploaded.resolve()
    expect(await exitCode).toBe(0)
    expect(err).toEqual(['Appended 10 records to app/s: sequence number 0 to 9'])
    expect(arrivals.map(({ batches }) => batches)).toEqual([1, 9])
    expect(clock.pending).toBe(0)
  })

  it('Ctrl+C ends the request in flight, and sends nothing that waits', async () => {
    const { fetch, arrivals } = await server(async (send, index) =>
      index === 0 ? send() : new Promise<Response>(() => {}),
    )
    const writer = append(numbered(5), fetch)
    await vi.waitUntil(() => arrivals.length === 2)
    await writer.hasEnded
    writer.signals.emit('SIGINT')
    expect(await writer.exitCode).toBe(130)
    expect(writer.err).toEqual(['Appended 1 record to app/s: sequence number 0, before it stopped'])
    expect(arrivals).toHaveLength(2)
  })

  it('reports over a socket why a long request has failed at its beginning', async () => {
    const { hw, stream, records } = await server()
    const node = await serve(hw, { auth: 'none', port: 0 })
    onTestFinished(() => node.close({ graceMs: 0 }))
    await stream.append([fenceRecord('mine')])
    let input = Promise.resolve()
    let requests = 0
    const relay: CliContext['fetch'] = async (request) => {
      if (request.method === 'POST' && ++requests === 2) await stream.append([fenceRecord('other')])
      else if (requests === 1) await input
      return fetch(request)
    }
    const lines = Array.from({ length: 100 }, () => `${'x'.repeat(9_999)}\n`)
    const writer = append(lines, relay, '--url', node.url, '--fencing-token', 'mine')
    input = writer.hasEnded
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      'Appended 1 record to app/s: sequence number 1, before it stopped',
      'headwater: the stream has another fencing token (fencing_token_mismatch)',
    ])
    expect([requests, (await records()).length]).toEqual([2, 3])
  })
})

type Frame = ReturnType<FrameDecoder['decode']> extends Iterable<infer Item> ? Item : never

function payloadLength(frame: Frame): number {
  return frame.kind === 'message' ? frame.payload.length : 0
}
