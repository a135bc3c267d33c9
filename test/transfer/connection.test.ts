import { describe, expect, it } from 'vitest'
import { virtualClock } from '../../adapters/testing/index.ts'
import { Connection, type ConnectionOptions } from '../../adapters/transfer/connection.ts'
import { immediateClock } from './support.ts'

function connection(fetch: ConnectionOptions['fetch'], options: Partial<ConnectionOptions> = {}): Connection {
  const signal = new AbortController().signal
  return new Connection({
    fetch,
    url: 'http://a',
    name: 'the service',
    clock: immediateClock(),
    signal,
    ...options,
  })
}
const GET = { method: 'GET', path: '/x' } as const

describe('a request', () => {
  it.each([408, 429, 500, 502, 503, 504])('is retried after %i until it succeeds', async (status) => {
    let requests = 0
    const clock = immediateClock()
    const answer = await connection(
      async () => new Response('{}', { status: requests++ < 5 ? status : 200 }),
      {
        clock,
      },
    ).call(GET)
    expect(answer).toMatchObject({ status: 200, attempts: 6 })
    expect(clock.pauses).toEqual([200, 400, 800, 1600, 3200])
    expect(clock.pending).toBe(0)
  })

  it('is sent six times at most', async () => {
    let requests = 0
    const failing = connection(async () => {
      requests++
      throw new Error('reset')
    })
    await expect(failing.call(GET)).rejects.toThrow('cannot reach the service: reset (6 attempts)')
    expect(requests).toBe(6)
    const unavailable = connection(
      async () => new Response('{"code":"unavailable","message":"m"}', { status: 503 }),
    )
    expect(await unavailable.call(GET)).toMatchObject({ status: 503, attempts: 6 })
  })

  it.each([400, 401, 403, 404, 409, 412, 416, 422])('is not retried after %i', async (status) => {
    const answer = await connection(async () => new Response('{}', { status })).call(GET)
    expect(answer).toMatchObject({ status, attempts: 1 })
  })

  it('fails after 30 seconds without data, but not while data arrives', async () => {
    const clock = virtualClock()
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const writer = body.writable.getWriter()
    const slow = connection(async () => new Response(body.readable), { clock })
    const call = slow.call(GET)
    await clock.settle()
    for (let i = 0; i < 5; i++) {
      await clock.advance('29s')
      await writer.write(Uint8Array.of(i))
      await clock.settle()
    }
    await writer.close()
    expect((await call).body).toEqual(Uint8Array.of(0, 1, 2, 3, 4))
    expect(clock.pending).toBe(0)

    const silent = connection(() => new Promise<Response>(() => {}), { clock })
    const rejection = expect(silent.call(GET)).rejects.toThrow('no response within 30 seconds (6 attempts)')
    await clock.advance('10m')
    await rejection
    expect(clock.pending).toBe(0)
  })

  it('ends with its signal at any stage', async () => {
    for (const fetch of [
      () => new Promise<Response>(() => {}),
      async () => new Response('', { status: 503 }),
    ]) {
      const clock = virtualClock()
      const control = new AbortController()
      const call = expect(
        connection(fetch, { clock, signal: control.signal }).call(GET),
      ).rejects.toMatchObject({
        kind: 'aborted',
      })
      await clock.settle()
      control.abort()
      await call
      expect(clock.pending).toBe(0)
    }
  })

  it('rejects an endless response', async () => {
    let isCancelled = false
    const endless = connection(
      async () =>
        new Response(
          new ReadableStream<Uint8Array>({
            pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
            cancel: () => {
              isCancelled = true
            },
          }),
        ),
    )
    await expect(endless.call(GET)).rejects.toThrow('its body is too long')
    expect(isCancelled).toBe(true)
  })

  it('contains the key only for records of encrypted streams', async () => {
    const keys: (string | null)[] = []
    const watched = connection(
      async ({ headers }) => {
        keys.push(headers.get('svc-encryption-key'), headers.get('s2-encryption-key'))
        return new Response('{}')
      },
      { encryptionKey: 'k' },
    )
    await watched.call(GET)
    await watched.call({ ...GET, withKey: true })
    expect(keys).toEqual([null, null, 'k', 'k'])
  })
})
