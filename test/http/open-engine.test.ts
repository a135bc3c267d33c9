import { expect, onTestFinished, test } from 'vitest'
import { createHandler, openOnce } from '../../adapters/http/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type Engine, HeadwaterError, open } from '../../src/index.ts'

const BASINS = 'http://localhost/v1/basins'

/** A handler whose engine is opened by `attempts` in turn; the last one is repeated. */
function lazyHandler(...attempts: (() => Promise<Engine>)[]) {
  const errors: unknown[] = []
  let count = 0
  const openEngine = () => attempts[Math.min(count++, attempts.length - 1)]!()
  const handler = createHandler(openEngine, { auth: 'none', onError: (error) => errors.push(error) })
  return {
    errors,
    get count() {
      return count
    },
    get: async () => {
      const response = await handler(new Request(BASINS))
      return { status: response.status, body: await response.json() }
    },
  }
}

async function openMemory(): Promise<Engine> {
  const hw = await open({ storage: memory() })
  onTestFinished(() => hw.close())
  return hw
}

test('the first requests open one engine together', async () => {
  const handler = lazyHandler(openMemory)
  expect(handler.count).toBe(0)
  const replies = await Promise.all([handler.get(), handler.get()])
  expect(replies.map(({ status }) => status)).toEqual([200, 200])
  expect(handler.count).toBe(1)
})

test('a failure is the reply of its requests, and the next request tries again', async () => {
  const failing = () => Promise.reject(new HeadwaterError('storage', 'the disk is away'))
  const handler = lazyHandler(failing, openMemory)
  expect(await handler.get()).toEqual({
    status: 503,
    body: { code: 'unavailable', message: 'the streams cannot be opened: the disk is away' },
  })
  expect(handler.errors.map(String)).toEqual(['HeadwaterError: the disk is away'])
  expect((await handler.get()).status).toBe(200)
  expect(handler.count).toBe(2)
})

test('the message of any other error stays private', async () => {
  const failing = () => {
    throw new Error('secret')
  }
  const handler = lazyHandler(failing)
  const { status, body } = await handler.get()
  expect(status).toBe(503)
  expect(JSON.stringify(body)).not.toContain('secret')
  expect(handler.errors.map(String)).toEqual(['Error: secret'])
})

test('a function that returns no engine is said to be wrong', async () => {
  const { status, body } = await lazyHandler(async () => undefined as never).get()
  expect(status).toBe(503)
  expect(body.message).toContain('a handler needs an open engine')
})

test('an engine that was closed is opened again', async () => {
  const engines: Engine[] = []
  const handler = lazyHandler(async () => {
    const hw = await openMemory()
    engines.push(hw)
    return hw
  })
  await handler.get()
  await engines[0]!.close()
  expect((await handler.get()).status).toBe(200)
  expect(engines).toHaveLength(2)
})

test('an app shares the engine of its handler', async () => {
  const engine = openOnce(openMemory)
  const handler = createHandler(engine, { auth: 'none' })
  await (await engine()).createBasin('my-basin')
  expect(await (await handler(new Request(BASINS))).json()).toMatchObject({ basins: [{ name: 'my-basin' }] })
})
