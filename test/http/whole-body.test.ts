import { describe, expect, it } from 'vitest'
import { wholeBody } from '../../adapters/http/body.ts'
import { FetchExchange } from '../../adapters/http/fetch-bridge.ts'
import { handlerSettings } from '../../adapters/http/options.ts'
import { ApiRequest } from '../../adapters/http/request.ts'
import { concatBytes } from '../../src/model/bytes.ts'
import { compress, REQUEST_BODY_BYTES_MAX } from '../../src/wire/compression.ts'

const SETTINGS = handlerSettings({})
const MATCH = { pattern: '', target: undefined, parameters: {} }

async function readBody(
  body: ReadableStream<Uint8Array> | null,
  coding: string,
  code: 'bad_json' | 'bad_proto',
): Promise<Uint8Array> {
  const init = { method: 'POST', body, duplex: 'half', headers: { 'content-encoding': coding } }
  const exchange = new FetchExchange(new Request('http://localhost/', init as RequestInit))
  return wholeBody(new ApiRequest(exchange, MATCH, SETTINGS), code)
}

/** A body of chunks; says how many were taken, and whether it was cancelled. */
function bodyOf(chunks: Iterable<Uint8Array>) {
  const iterator = chunks[Symbol.iterator]()
  const state = { taken: 0, cancelled: false }
  const stream = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const { done, value } = iterator.next()
        if (done) return controller.close()
        state.taken++
        controller.enqueue(value)
      },
      cancel() {
        state.cancelled = true
      },
    },
    { highWaterMark: 0 },
  )
  return { state, stream }
}

function* split(data: Uint8Array, length: number) {
  for (let start = 0; start < data.length; start += length) yield data.subarray(start, start + length)
}

const text = new Uint8Array(300_000).map((_, index) => (index * index) >> 10)

describe('wholeBody', () => {
  it('reads a missing body as an empty one', async () => {
    expect(await readBody(null, 'identity', 'bad_json')).toHaveLength(0)
    expect(await readBody(null, 'gzip', 'bad_json')).toHaveLength(0)
    expect(await readBody(bodyOf([]).stream, 'identity', 'bad_json')).toHaveLength(0)
    expect(await readBody(bodyOf([]).stream, 'zstd', 'bad_json')).toHaveLength(0)
  })

  it.each([
    ['identity', 1],
    ['identity', 7777],
    ['identity', 300_000],
    ['gzip', 1],
    ['gzip', 7777],
    ['zstd', 1],
    ['zstd', 7777],
  ] as const)('reads %s in chunks of %i', async (coding, length) => {
    const encoded = coding === 'identity' ? text : await compress(coding, text)
    const chunks = concatBytes([encoded]).slice()
    const { stream } = bodyOf([new Uint8Array(0), ...split(chunks, length), new Uint8Array(0)])
    expect(await readBody(stream, coding, 'bad_json')).toEqual(text)
    expect(chunks).toEqual(encoded)
  })

  it.each(['identity', 'gzip', 'zstd'] as const)('accepts 2 MiB and no more: %s', async (coding) => {
    const body = async (length: number) => {
      const data = new Uint8Array(length)
      return bodyOf(split(coding === 'identity' ? data : await compress(coding, data), 65_536)).stream
    }
    expect(await readBody(await body(REQUEST_BODY_BYTES_MAX), coding, 'bad_json')).toHaveLength(2_097_152)
    await expect(readBody(await body(REQUEST_BODY_BYTES_MAX + 1), coding, 'bad_proto')).rejects.toMatchObject(
      {
        code: 'bad_proto',
        status: 400,
      },
    )
  })

  it.each(['gzip', 'zstd'] as const)('accepts 2 MiB that %s cannot compress', async (coding) => {
    const data = new Uint8Array(REQUEST_BODY_BYTES_MAX)
    for (let start = 0; start < data.length; start += 65_536)
      crypto.getRandomValues(data.subarray(start, start + 65_536))
    const encoded = await compress(coding, data)
    expect(encoded.length).toBeGreaterThan(data.length)
    expect(await readBody(bodyOf([encoded]).stream, coding, 'bad_json')).toHaveLength(2_097_152)
  })

  it.each(['identity', 'gzip', 'zstd'] as const)('stops reading an endless body: %s', async (coding) => {
    const chunk = new Uint8Array(65_536)
    const { stream, state } = bodyOf({
      *[Symbol.iterator]() {
        for (;;) yield chunk
      },
    })
    await expect(readBody(stream, coding, 'bad_json')).rejects.toMatchObject({ code: 'bad_json' })
    expect(state.cancelled).toBe(true)
    expect(state.taken).toBeLessThan(35)
  })

  it('rejects a damaged body', async () => {
    const { stream } = bodyOf([Uint8Array.of(1, 2, 3)])
    await expect(readBody(stream, 'gzip', 'bad_json')).rejects.toMatchObject({ code: 'bad_json' })
  })

  it('rejects with the failure of the body as the cause', async () => {
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.error(new Error('hung up'))
      },
    })
    await expect(readBody(stream, 'identity', 'bad_json')).rejects.toMatchObject({
      code: 'bad_json',
      cause: new Error('hung up'),
    })
  })
})
