import { Readable } from 'node:stream'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { CliContext } from '../../adapters/cli/context.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { open, systemClock } from '../../src/index.ts'
import { fakeTerminal, run } from './run.ts'

const URL = 'http://127.0.0.1:8787'

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
  const requests = { count: 0, inFlight: 0, most: 0 }
  const fetch: CliContext['fetch'] = async (request) => {
    if (request.method !== 'POST') return handler(request)
    requests.most = Math.max(requests.most, ++requests.inFlight)
    try {
      return await respond(() => handler(request), requests.count++)
    } finally {
      requests.inFlight--
    }
  }
  const records = async () => (await stream.read().toArray()).map(({ body }) => body)
  return { hw, stream, fetch, requests, records }
}

/** Runs `append app/s` on chunks that arrive one after the other. */
function append(chunks: Iterable<string>, world: Partial<CliContext>, ...options: string[]) {
  const input = Readable.from(encoded(chunks))
  const hasEnded = new Promise<void>((resolve) => input.once('end', resolve))
  return { ...run(['append', 'app/s', ...options], { ...world, input: () => input }), input, hasEnded }
}

/** Lets the time pass that a writer waits before it repeats a request. */
async function advanceUntil({ exitCode, advance }: ReturnType<typeof run>): Promise<void> {
  let isOver = false
  void exitCode.finally(() => {
    isOver = true
  })
  await vi.waitUntil(() => {
    if (!isOver) advance(1_000)
    return isOver
  })
}

function* encoded(chunks: Iterable<string>) {
  for (const chunk of chunks) yield Buffer.from(chunk)
}

function numbered(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `line ${i}\n`)
}

function json(body: string, timestamp?: number): string {
  return `${JSON.stringify({ body, timestamp })}\n`
}

describe('append', () => {
  it('joins lines that arrive in pieces, and splits batches', { tags: ['slow'] }, async () => {
    const { fetch, records } = await server()
    const long = 'x'.repeat(700_000)
    const lines = [...Array.from({ length: 2_500 }, (_, i) => `line ${i}`), long, long, 'end']
    const text = lines.join('\n')
    const pieces = Array.from({ length: Math.ceil(text.length / 99_991) }, (_, i) =>
      text.slice(i * 99_991, (i + 1) * 99_991),
    )
    const { exitCode, err } = append(pieces, { fetch })
    expect(await exitCode).toBe(0)
    expect(err).toEqual(['Appended 2,503 records to app/s: sequence number 0 to 2502'])
    expect(await records()).toEqual(lines)
  })

  it('takes the header prefix from HEADWATER_HEADER_PREFIX', async () => {
    const { fetch } = await server()
    const basins: (string | null)[][] = []
    const world: Partial<CliContext> = {
      env: { HEADWATER_HEADER_PREFIX: 's2' },
      fetch: (request) => {
        basins.push([request.headers.get('s2-basin'), request.headers.get('svc-basin')])
        return fetch(request)
      },
    }
    expect(await append(numbered(2), world).exitCode).toBe(0)
    expect(new Set(basins.map(String))).toEqual(new Set(['app,']))
  })

  it('rejects a line that no record can hold, and reports what it has appended', async () => {
    const { fetch, records } = await server()
    const { exitCode, err } = append(['one\n', 'x'.repeat(1_048_577)], { fetch })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([
      'Appended 1 record to app/s: sequence number 0, before it stopped',
      'headwater: line 2 is longer than 1,048,568 bytes',
    ])
    expect(await records()).toEqual(['one'])
  })

  it('shows its progress, with rate and remaining time, only on a terminal', async () => {
    const { fetch } = await server()
    const { terminal, drawn } = fakeTerminal()
    const args = ['append', 'app/s', '--file', 'package.json']
    expect(await run([...args, '--quiet'], { fetch, terminal }).exitCode).toBe(0)
    expect(drawn()).toBe('')
    expect(await run(args, { fetch, terminal }).exitCode).toBe(0)
    expect(drawn()).toMatch(/Appending .*KiB.*\/s .*ETA .*records/)
  })
})

describe('append to a server', () => {
  it('waits for a server that refuses, and repeats what it cannot have stored', async () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    const { fetch, records } = await server((send, index) =>
      index === 1 ? Promise.reject(new TypeError('fetch failed', { cause: refused })) : send(),
    )
    const { exitCode, err } = append(['one\n', 'two\n'], { fetch }, '--retry-for', '60s')
    expect(await exitCode).toBe(0)
    expect(await records()).toEqual(['one', 'two'])
    expect(err.join('\n')).not.toMatch(/before it stopped/)
  })

  it('gives up when a server has been away for as long as `--retry-for`', async () => {
    const refused = Object.assign(new Error('connect'), { code: 'ECONNREFUSED' })
    let aheadMs = 0
    const clock = { ...systemClock, now: () => systemClock.now() + aheadMs }
    const { fetch, requests, records } = await server(async (send, index) => {
      if (index < 1) return send()
      aheadMs += 5_000
      throw new TypeError('fetch failed', { cause: refused })
    })
    const { exitCode, err } = append(['one\n', 'two\n'], { fetch, clock }, '--retry-for', '9s')
    expect(await exitCode).toBe(1)
    const reason = `headwater: cannot reach ${URL}: connection refused`
    expect(err).toEqual([
      `${reason}; trying again for 9 s, Ctrl+C stops`,
      'Appended 1 record to app/s: sequence number 0, before it stopped',
      `${reason}; tried for 9 s`,
    ])
    expect(requests.count).toBe(4)
    expect(await records()).toEqual(['one'])
  })

  it('sends one request at a time, and reads at most 8 MiB ahead', { tags: ['slow'] }, async () => {
    const line = `${'x'.repeat(999_999)}\n`
    let read = 0
    function* lines() {
      for (let i = 0; i < 40; i++) {
        read += line.length
        yield line
      }
    }
    let acked = 0
    const ahead: number[] = []
    const { fetch, requests, records } = await server(async (send) => {
      // The input is read as far as it is read at all once Node's buffer of it stays full.
      const { input } = writer
      do await new Promise((resolve) => setImmediate(resolve))
      while (input.readableLength === 0 && !input.readableEnded)
      ahead.push(read - acked)
      acked += line.length
      return send()
    })
    const writer = append(lines(), { fetch })
    expect(await writer.exitCode).toBe(0)
    expect(writer.err).toEqual(['Appended 40 records to app/s: sequence number 0 to 39'])
    expect(requests).toMatchObject({ count: 40, most: 1 })
    // The batch in flight, what the next one begins with, and what Node reads of a stream in advance.
    expect(Math.max(...ahead)).toBeLessThan(8 * 2 ** 20)
    expect(await records()).toHaveLength(40)
  })

  it('reports a batch that fails, and stores nothing after it', async () => {
    const { stream, fetch, records } = await server()
    await stream.reconfigure({ timestamping: { mode: 'client-require' } })
    const lines = [json('a', 1), json('b', 2), json('c', 3), json('d'), json('e', 5)]
    const writer = append(lines, { fetch }, '--json')
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      'Appended 3 records to app/s: sequence number 0 to 2, before it stopped',
      expect.stringMatching(/timestamp.*\(invalid\)$/),
    ])
    expect(await records()).toEqual(['a', 'b', 'c'])
  })

  const broken = () => new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })

  it.each([
    ['after', 'stored'],
    ['before', 'lost'],
  ])('repeats what was sent when the connection broke %s it was stored', async (when) => {
    const { fetch, requests, records } = await server(async (send, index) => {
      if (index % 2 === 0) return send()
      if (when === 'after') await send()
      throw broken()
    })
    const writer = append(numbered(5), { fetch })
    await advanceUntil(writer)
    expect(await writer.exitCode).toBe(0)
    expect(writer.err.at(-1)).toBe('Appended 5 records to app/s: sequence number 0 to 4')
    expect(writer.err[0]).toMatch(/read ECONNRESET.*; trying again for 60 s, Ctrl\+C stops$/)
    expect(requests.count).toBeGreaterThan(5)
    expect(await records()).toEqual(numbered(5).map((line) => line.trim()))
  })

  it.each([
    ['of another kind', undefined, 'the request may have taken effect'],
    ['with `--retry-for 0`', '0', 'the request may have taken effect'],
  ])('names what is unknown when the connection to a server %s broke', async (_, retryFor, reason) => {
    let stored = 0
    const { fetch, records } = await server(async (send) => {
      const response = await send()
      if (!response.ok || stored++ < 1) return response
      throw broken()
    })
    const others: CliContext['fetch'] = (request) => {
      const headers = new Headers(request.headers)
      headers.delete('headwater-append')
      return fetch(new Request(request, { headers }))
    }
    const options = retryFor === undefined ? [] : ['--retry-for', retryFor]
    const writer = append(numbered(5), { fetch: retryFor === undefined ? others : fetch }, ...options)
    await advanceUntil(writer)
    expect(await writer.exitCode).toBe(1)
    expect(writer.err).toEqual([
      expect.stringMatching(/^Appended \d records? to app\/s: sequence number 0.*, before it stopped$/),
      expect.stringMatching(
        /^Whether what was sent then is stored, from record \d to \d of the input, is unknown$/,
      ),
      `headwater: cannot reach ${URL}: read ECONNRESET; ${reason}`,
    ])
    const bodies = await records()
    expect(bodies).toEqual(Array.from(bodies, (_, index) => `line ${index}`))
  })

  it('appends as one producer a run, with 128 random bits in its id', async () => {
    const { fetch } = await server()
    const ids: unknown[] = []
    const recorded: CliContext['fetch'] = (request) => {
      const header = request.headers.get('headwater-append')
      if (header !== null) ids.push(new URLSearchParams(header).get('producer'))
      return fetch(request)
    }
    for (let runs = 0; runs < 2; runs++) {
      expect(await append(numbered(3), { fetch: recorded }).exitCode).toBe(0)
    }
    expect(ids).toEqual(Array(6).fill(expect.stringMatching(/^headwater-append-[0-9a-f]{32}$/)))
    expect(new Set(ids.slice(0, 3)).size).toBe(1)
    expect(new Set(ids).size).toBe(2)
  })

  it('appends without a producer to a stream that has too many', { tags: ['slow'] }, async () => {
    let isBreaking = false
    const { fetch, stream, requests, records } = await server(async (send) => {
      const response = await send()
      if (isBreaking && response.ok) throw broken()
      return response
    })
    for (let i = 0; i < 1_000; i++) await stream.append('x', { producer: { id: `p${i}`, epoch: 0, seq: 0 } })
    const writer = append(['one\n', 'two\n'], { fetch })
    expect(await writer.exitCode).toBe(0)
    // The first request is refused, because of its producer.
    expect(requests.count).toBe(3)
    isBreaking = true
    const failing = append(['three\n'], { fetch })
    await advanceUntil(failing)
    expect(await failing.exitCode).toBe(1)
    expect(failing.err).toContain(
      'Whether what was sent then is stored, from record 1 to 1 of the input, is unknown',
    )
    expect((await records()).slice(1_000)).toEqual(['one', 'two', 'three'])
  })

  it('stops reading an input that has not ended when a request fails', async () => {
    const { fetch } = await server(async () => {
      throw new TypeError('fetch failed', { cause: new Error('read ECONNRESET') })
    })
    const input = new Readable({ read() {} })
    input.push('one\n')
    const { exitCode, err } = run(['append', 'app/s', '--retry-for', '0'], { fetch, input: () => input })
    expect(await exitCode).toBe(1)
    expect(err).toEqual([
      'Whether what was sent then is stored, from record 1 to 1 of the input, is unknown',
      `headwater: cannot reach ${URL}: read ECONNRESET; the request may have taken effect`,
    ])
  })

  it('Ctrl+C ends the request in flight, and sends nothing that waits', async () => {
    const { fetch, requests } = await server(async (send, index) =>
      index === 0 ? send() : new Promise<Response>(() => {}),
    )
    const writer = append(numbered(5), { fetch })
    await vi.waitUntil(() => requests.count === 2)
    writer.signals.emit('SIGINT')
    expect(await writer.exitCode).toBe(130)
    expect(writer.err).toEqual([
      'Appended 1 record to app/s: sequence number 0, before it stopped',
      'Whether what was sent then is stored, from record 2 to 2 of the input, is unknown',
    ])
    expect(requests.count).toBe(2)
  })
})
