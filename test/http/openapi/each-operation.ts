import { describe, expect, test } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { faultyStorage } from '../../../adapters/testing/index.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { operations } from './contract.ts'
import { opened, RECORDS } from './opened.ts'
import { callerOf, problemsFound, sampleOf } from './provoke.ts'

const titled = operations.map((located) => [`${located.method} ${located.path}`, located] as const)
const secured = titled.filter(([, { operation }]) => operation.security === undefined)

describe('each operation', () => {
  test.each(secured)('%s needs a token', async (_, located) => {
    await using hw = await opened()
    const response = await callerOf(hw, { auth: 'token' })(...sampleOf(located))
    expect(response.status).toBe(401)
  })

  test.each(secured)('%s needs a permission', async (_, located) => {
    await using hw = await opened()
    const ops = located.operation.operationId === 'listLocations' ? 'list-basins' : 'list-locations'
    const scope = { basins: { prefix: '' }, streams: { prefix: '' }, ops: [ops] } as const
    const token = await hw.issueAccessToken({ id: 'other', scope })
    const [method, path, init] = sampleOf(located)
    const headers = { ...init.headers, authorization: `Bearer ${token}` }
    const response = await callerOf(hw, { auth: 'token' })(method, path, { ...init, headers })
    expect(response.status).toBe(403)
  })

  test.each(titled)('%s rejects an unknown content coding', async (_, located) => {
    await using hw = await opened()
    const [method, path, init] = sampleOf(located)
    const headers = { ...init.headers, 'content-encoding': 'br' }
    const response = await callerOf(hw)(method, path, { ...init, headers })
    expect(response.status).toBe(415)
  })

  test.each(titled)('%s rejects a host that is not allowed', async (_, located) => {
    await using hw = await opened()
    const [method, path, init] = sampleOf(located)
    const call = callerOf(hw, { allowedHosts: [] })
    const response = await call(method, path, { ...init, origin: 'http://rebound.example' })
    expect(response.status).toBe(421)
  })

  test.each(secured)('%s reports a storage that fails', async (_, located) => {
    const storage = faultyStorage(memory())
    await using hw = await opened({ storage })
    storage.fail('get')
    storage.fail('list')
    const [method, path, init] = sampleOf(located)
    // The first lookup of a token reads the storage.
    const headers = { ...init.headers, authorization: 'Bearer unknown-token' }
    const response = await callerOf(hw, { auth: 'token' })(method, path, { ...init, headers })
    expect(response.status).toBe(500)
    storage.heal()
  })

  test.each(titled)('%s reports an engine that cannot be opened', async (_, located) => {
    const failing = () => Promise.reject(new HeadwaterError('storage', 'the directory is locked'))
    const response = await callerOf(failing)(...sampleOf(located))
    expect(response.status).toBe(503)
  })

  const withBody = titled.filter(([, { operation }]) => operation.responses['429'] !== undefined)
  const uploads = withBody.filter(([, { operation }]) => operation.requestBody !== undefined)
  test.each(uploads)('%s is rejected if too many bodies are incomplete', async (_, located) => {
    await using hw = await opened()
    const call = callerOf(hw, { limits: { pendingBodyBytes: 2 * 1024 * 1024 } })
    let controller!: ReadableStreamDefaultController<Uint8Array>
    const body = new ReadableStream<Uint8Array>({
      start(started) {
        controller = started
        controller.enqueue(new Uint8Array(2 * 1024 * 1024))
      },
    })
    const [method, path, init] = sampleOf(located)
    const { json: _json, ...rest } = init
    const headers = { 'content-type': 'application/json', ...init.headers }
    const pending = call(method, path, { ...rest, headers, body })
    await expect
      .poll(async () => (await call(method, path, { ...rest, headers, body: oneByteMore() })).status)
      .toBe(429)
    controller.error(new Error('the client left'))
    await pending.catch(() => {})
    problemsFound()
  })

  const reads = withBody.filter(([, { operation }]) => operation.requestBody === undefined)
  test.each(reads)('%s is rejected if too many reads are open', async (_, located) => {
    await using hw = await opened({ limits: { openSessions: 1 } })
    const call = callerOf(hw)
    const following = await call.open('GET', RECORDS, { headers: { accept: 'text/event-stream' } })
    expect((await call(...sampleOf(located))).status).toBe(429)
    await following.body!.cancel()
  })
})

/** A body that is not complete when the handler reads it. */
function oneByteMore(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async start(controller) {
      controller.enqueue(new Uint8Array(1))
      await new Promise((resolve) => setImmediate(resolve))
      controller.close()
    },
  })
}
