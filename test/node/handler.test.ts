import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createHttp2Server } from 'node:http2'
import type { AddressInfo, Server } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type NodeHandlerOptions, toNodeHandler } from '../../adapters/node/index.ts'
import { open } from '../../src/index.ts'
import { testStorage } from '../support/index.ts'
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

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

const start = (listener: RequestListener) => listen(createServer({ keepAliveTimeout: 1 }, listener))

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
    const session = await http2Client(await listen(createHttp2Server(handler)))
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
    const paths = ['/v1/basins', `${RECORDS}/tail`, `${RECORDS}?seq_num=0`, '/health', '/elsewhere']
    const http1 = await start(handler)
    const session = await http2Client(await listen(createHttp2Server(handler)))
    for (const path of paths) {
      const [get, head] = await Promise.all(
        ['GET', 'HEAD'].map(async (method) => {
          const response = await fetch(`${http1}${path}`, { method, headers: HEADERS })
          const headers = new Headers(response.headers)
          // Undici closes the connection after HEAD.
          for (const name of ['date', 'connection', 'keep-alive']) headers.delete(name)
          const fields = Object.fromEntries(headers)
          return { status: response.status, headers: fields, body: await response.text() }
        }),
      )
      expect(head).toEqual({ ...get, body: '' })
      const [get2, head2] = await Promise.all(
        ['GET', 'HEAD'].map(async (method) => {
          const { headers, body } = await http2Fetch(session, {
            ':path': path,
            ':method': method,
            ...HEADERS,
          })
          return { headers: { ...headers, date: '' }, body }
        }),
      )
      expect(head2).toEqual({ ...get2, body: '' })
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
