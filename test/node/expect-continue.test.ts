import { describe, expect, onTestFinished, test } from 'vitest'
import { frame, OPENING, requestFrame } from './http2-frames.ts'
import { BASIN, Raw, request, server } from './raw.ts'
import { http2Client, http2Response, until } from './support.ts'

const RECORDS = '/v1/streams/s/records'
const HEADERS = { 'svc-basin': BASIN, 'content-type': 'application/json', expect: '100-continue' }
const BODY = '{"records":[{}]}'

test('continues an upload over HTTP/1.1', async () => {
  const { port } = await server()
  const raw = new Raw(port).send(
    request('POST', RECORDS, { ...HEADERS, 'content-length': String(BODY.length) }),
  )
  expect((await raw.response()).status).toBe(100)
  raw.send(BODY)
  expect((await raw.response()).status).toBe(200)
})

test('continues an upload over HTTP/2', async () => {
  const { url } = await server()
  const client = await http2Client(url)
  const stream = client.request({ ...HEADERS, ':method': 'POST', ':path': RECORDS })
  await new Promise((resolve) => stream.once('continue', () => resolve(undefined)))
  stream.end(BODY)
  expect((await http2Response(stream)).headers[':status']).toBe(200)
})

describe('an HTTP/2 client that leaves before `100 Continue`', () => {
  test.each([
    ['a reset', frame('rstStream', 0, 1, [0, 0, 0, 8])],
    ['GOAWAY with an error', frame('goAway', 0, 0, [0, 0, 0, 0, 0, 0, 0, 1])],
    ['a malformed frame', frame('windowUpdate', 0, 0, [1, 2, 3])],
  ])('by %s ends no more than its request', async (_, leaving) => {
    const { port, url, errors } = await server()
    const uncaught: unknown[] = []
    const onUncaught = (error: unknown) => void uncaught.push(error)
    process.on('uncaughtException', onUncaught)
    onTestFinished(() => void process.off('uncaughtException', onUncaught))
    for (let count = 0; count < 20; count++) {
      const raw = new Raw(port).send(
        Buffer.concat([OPENING, requestFrame(1, 'POST', RECORDS, HEADERS), leaving]),
      )
      await until(() => raw.received !== '' || raw.ended)
      raw.socket.destroy()
    }
    expect((await fetch(`${url}/health`)).status).toBe(200)
    expect(uncaught).toEqual([])
    expect(errors).toEqual([])
  })
})
