import { beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { type ConnectOptions, connect } from '../../adapters/client/index.ts'
import { createHandler } from '../../adapters/http/index.ts'
import { open } from '../../src/index.ts'
import { encodeMessageFrame, FrameDecoder } from '../../src/wire/frame.ts'
import { testStorage } from '../support/index.ts'
import { failureOf } from './network.ts'

const TEXT = 'text '.repeat(1_000)
const moduleLoads = vi.hoisted(() => vi.fn())

vi.mock('../../src/wire/zstd-module.ts', () => {
  moduleLoads()
  return {}
})

beforeEach(() => {
  // As in a page.
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue(undefined as never)
  moduleLoads.mockClear()
})

/** A client in a page, and the responses to it. The server has a stream with one record. */
async function connectedPage(options: Partial<ConnectOptions> = {}) {
  const engine = await open({ storage: testStorage() })
  await engine.ensureBasin('basin')
  await engine.basin('basin').ensureStream('stream')
  await engine.basin('basin').stream('stream').append(TEXT)
  const handler = createHandler(engine, { auth: 'none' })
  const responses: Response[] = []
  const hw = await connect({
    url: 'http://localhost',
    random: () => 0,
    fetch: async (request) => {
      // What Chromium adds to each request, whatever the page says.
      const headers = new Headers(request.headers)
      headers.set('accept-encoding', 'gzip, deflate, br, zstd')
      headers.set('sec-fetch-site', 'same-origin')
      const response = await handler(new Request(request, { headers }))
      responses.push(response.clone())
      return response
    },
    ...options,
  })
  onTestFinished(async () => {
    await hw.close()
    await engine.close()
  })
  return { stream: hw.basin('basin').stream('stream'), responses }
}

it('a page reads frames that the server compresses with gzip, although its browser accepts zstd', async () => {
  const { stream, responses } = await connectedPage()
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual([TEXT])
  const chunks = new Uint8Array(await responses[0]!.arrayBuffer())
  const [frame] = new FrameDecoder().decode(chunks)
  expect(frame).toMatchObject({ kind: 'message', compression: 'gzip' })
  expect(moduleLoads).not.toHaveBeenCalled()
})

it('a page reads events with the header prefix of servers that compress frames with zstd', async () => {
  vi.stubGlobal('WorkerGlobalScope', class {})
  onTestFinished(() => void vi.unstubAllGlobals())
  const { stream, responses } = await connectedPage({ headerPrefix: 's2' })
  expect((await stream.read().toArray()).map(({ body }) => body)).toEqual([TEXT])
  expect(responses.map(({ headers }) => headers.get('content-type'))).toEqual(['text/event-stream'])
  expect(moduleLoads).not.toHaveBeenCalled()
})

it('a page that receives a frame in zstd says that it has none', async () => {
  const frame = encodeMessageFrame(new Uint8Array(9), { compression: 'zstd' }) as Uint8Array<ArrayBuffer>
  const fetch = async () => new Response(frame, { headers: { 'content-type': 'svcs/proto' } })
  const { stream } = await connectedPage({ fetch })
  expect(await failureOf(stream.read().toArray())).toMatchObject({
    code: 'other',
    message: expect.stringContaining('a frame is compressed with zstd, which this runtime does not have'),
  })
})
