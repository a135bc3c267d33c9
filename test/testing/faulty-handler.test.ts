import { describe, expect, test } from 'vitest'
import { faultyHandler, virtualClock } from '../../adapters/testing/index.ts'

/** A handler that echoes requests and records which arrived and which responses were cancelled. */
function echo() {
  const arrived: string[] = []
  const cancelled = { count: 0 }
  const clock = virtualClock()
  const handler = faultyHandler(
    async (request) => {
      const text = await request.text()
      arrived.push(`${request.method} ${text}`)
      const number = arrived.length
      let chunksLeft = 3
      const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
        const part = `${number}: ${text}`.padEnd(10)
        if (chunksLeft-- > 0) controller.enqueue(new TextEncoder().encode(part))
        else controller.close()
      }
      const cancel = () => void cancelled.count++
      // Produces data only on demand.
      const body = new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })
      return new Response(body, { status: 201, headers: { 'x-answer': 'yes' } })
    },
    { clock },
  )
  return { handler, arrived, cancelled, clock }
}

function post(body: string, init: RequestInit = {}): Request {
  return new Request('http://localhost/v1/things?secret=1', { method: 'POST', body, ...init })
}

const failure = (call: Promise<unknown>) =>
  call.then(
    () => 'none',
    (error: unknown) => {
      const { message, cause } = error as Error & { cause?: { code?: string } }
      return `${message}: ${cause?.code}`
    },
  )

describe('a faulty handler', () => {
  test('passes requests and responses unchanged without faults', async () => {
    const { handler, cancelled } = echo()
    const response = await handler(post('a'))
    expect([response.status, response.headers.get('x-answer')]).toEqual([201, 'yes'])
    expect(await response.text()).toBe('1: a'.padEnd(10).repeat(3))
    expect([cancelled.count, handler.log]).toEqual([0, []])
  })

  test('drops a request before it arrives', async () => {
    const { handler, arrived } = echo()
    handler.drop({ nth: 1 })
    const request = post('a')
    expect(await failure(handler(request))).toBe('fetch failed: ECONNRESET')
    expect(arrived).toEqual([])
    // The body is cancelled.
    expect(request.bodyUsed).toBe(true)
    expect((await handler(post('b'))).status).toBe(201)
    expect(handler.log).toEqual([{ call: 1, method: 'POST', path: '/v1/things', fault: 'dropped' }])
  })

  test('loses a response and cancels its body', async () => {
    const { handler, arrived, cancelled } = echo()
    handler.loseResponse({ nth: 1 })
    expect(await failure(handler(post('a')))).toBe('fetch failed: ECONNRESET')
    expect(arrived).toEqual(['POST a'])
    expect(cancelled.count).toBe(1)
  })

  test.each([
    [0, ''],
    [4, '1: a'],
    [10, '1: a      '],
    [25, '1: a      1: a      1: a '],
  ])('cuts a response after %i bytes', async (bytes, expected) => {
    const { handler, cancelled } = echo()
    handler.cut(bytes)
    const response = await handler(post('a'))
    expect([response.status, response.headers.get('x-answer')]).toEqual([201, 'yes'])
    const reader = response.body!.getReader()
    let text = ''
    const read = async () => {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return
        text += new TextDecoder().decode(value)
      }
    }
    expect(await failure(read())).toBe('terminated: UND_ERR_SOCKET')
    expect(text).toBe(expected)
    expect(cancelled.count).toBe(1)
  })

  test('delivers a request twice and returns the second response', async () => {
    const { handler, arrived, cancelled } = echo()
    handler.duplicate({ nth: 1 })
    const response = await handler(post('a'))
    expect(await response.text()).toContain('2: a')
    expect(arrived).toEqual(['POST a', 'POST a'])
    expect(cancelled.count).toBe(1)
  })

  test('responds without the handler', async () => {
    const { handler, arrived } = echo()
    handler.respond(503, { nth: 1 })
    handler.respond(429, { code: 'rate_limited', headers: { 'retry-after-ms': '5' } })
    const [first, second] = [await handler(post('a')), await handler(post('b'))]
    expect([first.status, await first.json()]).toEqual([503, { code: 'unavailable', message: 'injected' }])
    expect([second.status, await second.json()]).toEqual([429, { code: 'rate_limited', message: 'injected' }])
    expect(second.headers.get('retry-after-ms')).toBe('5')
    expect(arrived).toEqual([])
    expect(() => handler.respond(200)).toThrow(expect.objectContaining({ code: 'invalid' }))
    for (const bytes of [-1, 1.5, Number.NaN])
      expect(() => handler.cut(bytes)).toThrow(expect.objectContaining({ code: 'invalid' }))
  })

  test('delays requests and responses', async () => {
    const { handler, arrived, clock } = echo()
    handler.delay('2s')
    handler.delay('1s', { after: true })
    let isAnswered = false
    const response = handler(post('a')).then(() => {
      isAnswered = true
    })
    await clock.advance(1999)
    expect(arrived).toEqual([])
    await clock.advance(1)
    expect([arrived, isAnswered]).toEqual([['POST a'], false])
    await clock.advance('1s')
    await response
    expect(clock.pending).toBe(0)
  })

  test.each([
    ['request', { after: false }, 0],
    ['response', { after: true }, 1],
  ])('releases a delayed %s when the client aborts', async (_, options, count) => {
    const { handler, cancelled, clock, arrived } = echo()
    handler.delay('1h', options)
    const control = new AbortController()
    const held = handler(post('a', { signal: control.signal }))
    await clock.settle()
    expect(clock.pending).toBe(1)
    control.abort(new Error('gone'))
    await expect(held).rejects.toThrow('gone')
    expect([clock.pending, arrived.length, cancelled.count]).toEqual([0, count, count])
  })

  test('releases everything when it is healed', async () => {
    const { handler, clock } = echo()
    handler.delay('1h')
    handler.delay('1h', { after: true })
    handler.respond(503, { when: () => false })
    const held = handler(post('a'))
    handler.heal()
    expect((await held).status).toBe(201)
    expect((await handler(post('b'))).status).toBe(201)
    expect(clock.pending).toBe(0)
  })

  test('affects the selected requests, each with one fault', async () => {
    const { handler, arrived } = echo()
    handler.drop({ when: (request) => request.method === 'POST', nth: 2 })
    handler.loseResponse({ when: (request) => request.method === 'POST', nth: 2 })
    expect(await failure(handler(new Request('http://localhost/')))).toBe('none')
    expect(await failure(handler(post('a')))).toBe('none')
    expect(await failure(handler(post('b')))).toBe('fetch failed: ECONNRESET')
    expect(await failure(handler(post('c')))).toBe('none')
    expect(arrived).toEqual(['GET ', 'POST a', 'POST c'])
  })
})
