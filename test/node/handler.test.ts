import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type NodeHandlerOptions, toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
import { listening } from '../support/listening.ts'
import { http2Client, http2Fetch } from './support.ts'

const HEADERS = { 'svc-basin': 'test-basin', 'content-type': 'application/json' }
const RECORDS = '/v1/streams/s/records'

/** A handler of an engine with one stream. */
async function handlerOf(options: NodeHandlerOptions = {}) {
  const hw = await open({ storage: testStorage() })
  onTestFinished(() => hw.close())
  await hw.createBasin('test-basin')
  await hw.basin('test-basin').createStream('s')
  const errors: unknown[] = []
  const onError = (error: unknown) => void errors.push(error)
  return { hw, errors, handler: toNodeHandler(hw, { auth: 'none', onError, ...options }) }
}

const start = (listener: RequestListener) => listening(createServer({ keepAliveTimeout: 1 }, listener))

function append(url: string): Promise<Response> {
  const body = JSON.stringify({ records: [{ body: 'x' }] })
  return fetch(`${url}${RECORDS}`, { method: 'POST', headers: HEADERS, body })
}

describe('toNodeHandler', () => {
  it('serves node:http', async () => {
    const { handler } = await handlerOf()
    const url = await start(handler)
    expect((await append(url)).status).toBe(200)
    expect((await fetch(`${url}/elsewhere`)).status).toBe(404)
  })

  it('serves node:http2', async () => {
    const { handler } = await handlerOf()
    const session = await http2Client(await listening(createHttp2Server(handler)))
    const response = await http2Fetch(session, { ':path': `${RECORDS}/tail`, ...HEADERS })
    expect(JSON.parse(response.body)).toMatchObject({ tail: { seq_num: 0 } })
    session.destroy()
  })

  it('serves paths from which a framework has removed the mount point', async () => {
    const { handler } = await handlerOf()
    const url = await start((req, res) => {
      req.url = req.url!.replace(/^\/mounted/, '')
      handler(req, res)
    })
    expect((await append(`${url}/mounted`)).status).toBe(200)
  })

  it('removes `prefix` itself', async () => {
    const { handler } = await handlerOf({ prefix: '/mounted' })
    expect((await append(`${await start(handler)}/mounted`)).status).toBe(200)
  })

  it('passes requests to other paths on to the next middleware', async () => {
    const { handler } = await handlerOf({ prefix: '/mounted' })
    const url = await start((req, res) => handler(req, res, () => res.writeHead(418).end()))
    expect((await append(`${url}/mounted`)).status).toBe(200)
    for (const path of ['/elsewhere', '/', '/mounted', '/mounted/']) {
      expect((await fetch(`${url}${path}`)).status).toBe(418)
    }
    expect((await fetch(`${url}/elsewhere`, { method: 'OPTIONS' })).status).toBe(418)
  })

  it.each(['application/json', 'svcs/proto'])(
    'reports that a body parser has read a body of %s',
    async (type) => {
      const { handler, errors, hw } = await handlerOf()
      const url = await start((req, res) => {
        req.resume().on('end', () => handler(req, res))
      })
      const headers = { ...HEADERS, 'content-type': type }
      const response = await fetch(`${url}${RECORDS}`, { method: 'POST', headers, body: '{"records":[{}]}' })
      expect(response.status).toBe(500)
      expect(await response.json()).toMatchObject({
        code: 'other',
        message: expect.stringContaining('body parser such as `express.json()`'),
      })
      expect(errors).toHaveLength(1)
      expect(hw.stats()).toMatchObject({ openSessions: 0 })
    },
  )

  it('responds to HEAD with the headers of GET, over both protocols', async () => {
    const { handler } = await handlerOf()
    const url = await start(handler)
    const session = await http2Client(await listening(createHttp2Server(handler)))
    const reply = async (path: string, method: string) => {
      const { status, headers } = await fetch(`${url}${path}`, { method, headers: HEADERS })
      const second = await http2Fetch(session, { ':path': path, ':method': method, ...HEADERS })
      const fields = (name: string) => [headers.get(name), second.headers[name]]
      if (method === 'HEAD') expect(second.body).toBe('')
      const shown = [fields('content-type'), fields('content-length'), fields('vary')]
      return [status, second.headers[':status'], ...shown]
    }
    for (const path of ['/v1/basins', `${RECORDS}/tail`, `${RECORDS}?seq_num=0`, '/health', '/elsewhere']) {
      expect([path, await reply(path, 'HEAD')]).toEqual([path, await reply(path, 'GET')])
    }
    session.destroy()
  })

  it('passes the request of the framework to `getToken`', async () => {
    const { hw } = await handlerOf()
    const token = await hw.issueAccessToken({
      id: 'of-a-session',
      scope: { basins: { prefix: '' }, streams: { prefix: '' }, ops: ['append'] },
    })
    const tokens = new WeakMap<object, string>()
    const handler = toNodeHandler(hw, { getToken: ({ source }) => tokens.get(source) })
    const url = await start((req, res) => {
      if (req.headers.cookie === 'session=1') tokens.set(req, token)
      handler(req, res)
    })
    expect((await append(url)).status).toBe(401)
    const headers = { ...HEADERS, cookie: 'session=1' }
    const body = '{"records":[{}]}'
    expect((await fetch(`${url}${RECORDS}`, { method: 'POST', headers, body })).status).toBe(200)
  })
})
