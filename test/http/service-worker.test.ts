import { describe, expect, test, vi } from 'vitest'
import { type HandlerOptions, serveFetchEvents } from '../../adapters/http/index.ts'
import type { Engine } from '../../src/index.ts'
import { BASIN, RECORDS, startWithStream } from './support.ts'

const ORIGIN = 'https://app.example'

interface WorkerOptions extends HandlerOptions {
  readonly openEngine: () => Promise<Engine>
  /** The path of the worker's scope. */
  readonly scope?: string
}

/** A service worker's global scope with its fetch events: `undefined` is what the network answers. */
function startWorker({ openEngine, scope = '/', ...options }: WorkerOptions) {
  const worker = new EventTarget()
  vi.stubGlobal('addEventListener', worker.addEventListener.bind(worker))
  vi.stubGlobal('location', new URL(`${ORIGIN}/service-worker.js`))
  vi.stubGlobal('registration', { scope: `${ORIGIN}${scope}` })
  try {
    serveFetchEvents(openEngine, { auth: 'none', ...options })
  } finally {
    vi.unstubAllGlobals()
  }
  const otherListener: string[] = []
  worker.addEventListener('fetch', (event) => {
    otherListener.push(new URL((event as FetchEvent).request.url).pathname)
  })
  const dispatch = (request: Request) => {
    const event = new FetchEvent(request)
    worker.dispatchEvent(event)
    return event.response
  }
  const requestOf = (path: string) => new Request(new URL(path, ORIGIN), { headers: { 'svc-basin': BASIN } })
  return {
    otherListener,
    fetch: (path: string) => dispatch(requestOf(path)),
    /** As when an address is entered, a link followed, a form sent. No script can make such a request. */
    navigate: (path: string) =>
      dispatch(Object.defineProperty(requestOf(path), 'mode', { value: 'navigate' })),
    /** As an element of a page does. No script can make such a request either. */
    embed: (path: string, destination: RequestDestination) =>
      dispatch(Object.defineProperty(requestOf(path), 'destination', { value: destination })),
  }
}

class FetchEvent extends Event {
  readonly request: Request
  response: Promise<Response> | undefined

  constructor(request: Request) {
    super('fetch')
    this.request = request
  }

  respondWith(response: Promise<Response>): void {
    this.response = response
  }
}

describe('in a service worker', () => {
  test('opens the engine once, at the first request that needs it', async () => {
    const { hw } = await startWithStream()
    const openEngine = vi.fn(async () => hw)
    const { fetch } = startWorker({ openEngine })
    fetch('/index.html')
    expect(openEngine).not.toHaveBeenCalled()
    const answers = await Promise.all([
      fetch(`${RECORDS}/tail`),
      fetch(`${RECORDS}/tail`),
      fetch('/v1/basins'),
    ])
    expect(answers.map((answer) => answer?.status)).toEqual([200, 200, 200])
    expect(openEngine).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['another path', '/v1.html'],
    ['a path of the same beginning', '/v10/basins'],
    ['another origin', `https://elsewhere.example${RECORDS}`],
  ])('leaves %s to the network and to other listeners', async (_, path) => {
    const { hw } = await startWithStream()
    const { fetch, otherListener } = startWorker({ openEngine: async () => hw })
    expect(fetch(path)).toBeUndefined()
    expect(otherListener).toHaveLength(1)
    await fetch('/v1/basins')
    expect(otherListener).toHaveLength(1)
  })

  test.each<RequestDestination>(['image', 'script', 'style', 'video', 'iframe', 'object', 'worker'])(
    'leaves requests of markup (%s) to the network and to other listeners',
    async (destination) => {
      const { hw } = await startWithStream()
      const { embed, otherListener } = startWorker({ openEngine: async () => hw })
      expect(embed(`${RECORDS}/tail`, destination)).toBeUndefined()
      expect(otherListener).toEqual([`${RECORDS}/tail`])
    },
  )

  test.each<[string, string, string | undefined]>([
    ['/', '/v1/basins', undefined],
    ['/app/', '/app/v1/basins', undefined],
    ['/app/', '/streams/v1/basins', '/streams'],
    ['/an app/', '/an%20app/v1/basins', undefined],
  ])('serves, in scope %s, %s with prefix %s', async (scope, path, prefix) => {
    const { hw } = await startWithStream()
    const options = prefix === undefined ? {} : { prefix }
    const { fetch } = startWorker({ openEngine: async () => hw, scope, ...options })
    expect((await fetch(path))?.status).toBe(200)
    expect(fetch(`/elsewhere${path}`)).toBeUndefined()
  })

  test('rejects invalid options before the first request', async () => {
    const openEngine = () => Promise.reject(new Error('not asked for'))
    expect(() => startWorker({ openEngine, cors: 'false' as never })).toThrow(
      expect.objectContaining({ code: 'invalid' }),
    )
    expect(() => startWorker({ openEngine, basin: 'NO' })).toThrow('basin name must begin')
  })
})
