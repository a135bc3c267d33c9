import { S2, S2Error } from '@s2-dev/streamstore'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import {
  faultyHandler,
  type Handler,
  type InProcessServiceOptions,
  inProcessService,
  virtualClock,
} from '../../adapters/testing/index.ts'
import { type Clock, open } from '../../src/index.ts'
import { strings } from '../interop/records.ts'

const realFetch = Object.getOwnPropertyDescriptor(globalThis, 'fetch')!

function started(handler: Handler, options?: InProcessServiceOptions) {
  const service = inProcessService(handler, options)
  onTestFinished(() => service.close())
  return service
}

async function engine(clock: Clock = virtualClock()) {
  const hw = await open({ storage: memory(), clock })
  onTestFinished(() => hw.close())
  return hw
}

/** After the services are closed, the function is the original one again. */
beforeEach(() => {
  onTestFinished(() => expect(Object.getOwnPropertyDescriptor(globalThis, 'fetch')).toEqual(realFetch))
})

const saying =
  (text: string): Handler =>
  () =>
    new Response(text)

const textOf = async (url: string) => (await fetch(url)).text()

describe('an in-process service', () => {
  test('receives the requests for its address and leaves all others to the original `fetch`', async () => {
    const before: string[] = []
    const nextFetch: typeof fetch = async (input) => {
      before.push(String(input))
      return new Response('elsewhere')
    }
    globalThis.fetch = nextFetch
    const requests: string[] = []
    const service = inProcessService(async (request) => {
      requests.push(`${request.method} ${request.url} ${await request.text()}`)
      return new Response('here', { status: 202 })
    })
    const url = `${service.url}/a?b=c`
    expect((await fetch(url)).status).toBe(202)
    await fetch(new URL(url), { method: 'PUT', body: 'x' })
    await fetch(new Request(url, { method: 'POST', body: 'y' }))
    await fetch(new Request(url, { method: 'POST', body: 'y' }), { method: 'DELETE', body: 'z' })
    expect(requests).toEqual([`GET ${url} `, `PUT ${url} x`, `POST ${url} y`, `DELETE ${url} z`])
    expect(before).toEqual([])
    expect(await textOf('http://example.com/')).toBe('elsewhere')
    expect(await textOf(`${service.url}0/`)).toBe('elsewhere')
    expect(await textOf('/relative')).toBe('elsewhere')
    service.close()
    expect(globalThis.fetch).toBe(nextFetch)
    globalThis.fetch = realFetch.value
  })

  test('is removed by `close`, a second `close` and `using`, with its address', async () => {
    const service = started(saying('here'))
    service.close()
    service.close()
    await expect(fetch(service.url)).rejects.toThrow('fetch failed')
    {
      using inBlock = inProcessService(saying('in a block'))
      await using another = inProcessService(saying('another'))
      expect([await textOf(inBlock.url), await textOf(another.url)]).toEqual(['in a block', 'another'])
    }
  })

  test('has its own address among several services, closed in any order', async () => {
    const order = [1, 2, 0]
    const three = ['a', 'b', 'c'].map((text) => started(saying(text)))
    const open = new Set(three)
    for (const index of order) {
      for (const service of open) expect(await textOf(service.url)).toBe('abc'[three.indexOf(service)])
      expect(globalThis.fetch).not.toBe(realFetch.value)
      three[index]!.close()
      open.delete(three[index]!)
      await expect(fetch(three[index]!.url)).rejects.toThrow('fetch failed')
    }
    expect(globalThis.fetch).toBe(realFetch.value)
  })

  test('rejects an aborted request even if the handler responds', async () => {
    let signal: AbortSignal | undefined
    const service = started((request) => {
      signal = request.signal
      return new Promise(() => {})
    })
    const control = new AbortController()
    const waiting = fetch(service.url, { signal: control.signal })
    control.abort(new Error('gone'))
    await expect(waiting).rejects.toThrow('gone')
    expect(signal?.aborted).toBe(true)
    await expect(fetch(service.url, { signal: AbortSignal.abort(new Error('never')) })).rejects.toThrow(
      'never',
    )
  })

  test('fails open requests and responses when it is closed', async () => {
    let cancelled = 0
    const endless = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(1)),
          cancel: () => void cancelled++,
        }),
      )
    const service = started(endless)
    const reader = (await fetch(service.url)).body!.getReader()
    await reader.read()
    service.close()
    await expect(reader.read()).rejects.toMatchObject({ cause: { code: 'ECONNRESET' } })
    expect(cancelled).toBe(1)
  })
})

/** The published client on an engine in this process. */
async function published() {
  const clock = virtualClock()
  const hw = await engine(clock)
  const handler = faultyHandler(createHandler(hw, { auth: 'none' }), { clock })
  const service = started(handler)
  const s2 = service.connect(S2)
  await s2.basins.create({ basin: 'in-process', config: { createStreamOnAppend: true } })
  return { clock, hw, handler, service, s2, basin: s2.basin('in-process') }
}

describe('the published client without a socket', () => {
  test('appends, reads and follows with the virtual clock', { tags: ['slow'] }, async () => {
    const { basin, clock, hw } = await published()
    const stream = basin.stream('orders')
    await stream.append(strings('a', 'b'))
    const { records } = await stream.read({ start: { from: { seqNum: 0 } } })
    expect(records.map(({ body }) => body)).toEqual(['a', 'b'])
    const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
    const reader = session.getReader()
    const next = async () => (await reader.read()).value?.body
    expect([await next(), await next()]).toEqual(['a', 'b'])
    // Heartbeats, driven by the virtual clock, keep the session open for hours.
    await clock.advance('2h')
    await stream.append(strings('c'))
    expect(await next()).toBe('c')
    await reader.cancel()
    await expect.poll(() => hw.stats().openReads).toBe(0)
    await stream.close()
  })

  test('retries at once if a retry is permitted', async () => {
    const { basin, handler } = await published()
    const stream = basin.stream('orders')
    handler.respond(503, { nth: 1 })
    handler.drop({ nth: 2 })
    await stream.append(strings('a'))
    expect((await stream.checkTail()).tail.seqNum).toBe(1)
    handler.drop()
    await expect(stream.checkTail()).rejects.toMatchObject({ status: 502, code: 'ECONNRESET' })
    await expect(stream.checkTail()).rejects.toBeInstanceOf(S2Error)
    await stream.close()
  })

  test('sends the configured token', async () => {
    const hw = await engine()
    const handler = createHandler(hw)
    const accessToken = (await hw.createRootToken())!
    const [known, unknown] = [started(handler, { accessToken }), started(handler)]
    await expect(known.connect(S2).basins.list()).resolves.toMatchObject({ basins: [] })
    await expect(unknown.connect(S2).basins.list()).rejects.toMatchObject({ status: 401 })
  })

  test('fails its open sessions when the service closes', async () => {
    const { basin, service, hw } = await published()
    const stream = basin.stream('orders')
    await stream.append(strings('a'))
    const reader = (await stream.readSession({ start: { from: { seqNum: 0 } } })).getReader()
    await reader.read()
    const next = reader.read()
    service.close()
    await expect(next).rejects.toBeInstanceOf(S2Error)
    await expect.poll(() => hw.stats().openReads).toBe(0)
  })
})
