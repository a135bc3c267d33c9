import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type FaultyStorage, faultyStorage } from '../../../adapters/testing/index.ts'
import type { Stream } from '../../../src/index.ts'
import { openEngine, outcomeOf, readAll, type TestEngine, testStorage } from '../../support/index.ts'

let engine: TestEngine
let storage: FaultyStorage
let stream: Stream
const unhandled: unknown[] = []
const onUnhandled = (error: unknown) => unhandled.push(error)
let listeners: NodeJS.UnhandledRejectionListener[]

beforeEach(async () => {
  storage = faultyStorage(testStorage())
  engine = await openEngine({ storage })
  stream = engine.stream
  unhandled.length = 0
  listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', onUnhandled)
})

afterEach(async () => {
  await engine.clock.settle()
  process.off('unhandledRejection', onUnhandled)
  for (const listener of listeners) process.on('unhandledRejection', listener)
  await engine.hw.close()
  expect(unhandled).toEqual([])
})

/** Sessions and producers have the same calls. */
const OPENED = [
  ['a session', async () => stream.appendSession()],
  ['a producer', async () => stream.producer({ lingerMs: 1_000, recordsMax: 1 })],
] as const

const failNext = () => storage.failNext('append', { kind: 'io' })

describe.each(OPENED)('disposing of %s', (_, opened) => {
  it('rejects with the failure of an append whose ticket is not awaited', async () => {
    failNext()
    const write = async () => {
      await using writer = await opened()
      await writer.submit('only')
    }
    await expect(write()).rejects.toMatchObject({ code: 'storage' })
    expect(await stream.read({}, { create: true }).toArray()).toEqual([])
  })

  it('resolves when everything is durable', async () => {
    {
      await using writer = await opened()
      await writer.submit('a')
      await writer.submit('b')
    }
    expect(await readAll(stream)).toEqual(['a', 'b'])
  })

  it('adds nothing to a failure that the body throws on because a ticket reported it', async () => {
    failNext()
    const write = async () => {
      await using writer = await opened()
      await (await writer.submit('a')).ack()
    }
    await expect(write()).rejects.toMatchObject({ code: 'storage' })
  })

  it('adds nothing to a failure that the body throws on because `submit` reported it', async () => {
    failNext()
    let submitted = 0
    const write = async () => {
      await using writer = await opened()
      for (;;) {
        await writer.submit('a')
        submitted++
        await engine.clock.settle()
      }
    }
    await expect(write()).rejects.toMatchObject({ code: 'storage' })
    expect(submitted).toBe(1)
  })

  it('keeps both errors if the body throws another one', async () => {
    failNext()
    const write = async () => {
      await using writer = await opened()
      await writer.submit('a')
      throw new Error('of the body')
    }
    const error = await write().catch((thrown: SuppressedError) => thrown)
    expect(error).toMatchObject({ error: { code: 'storage' }, suppressed: { message: 'of the body' } })
  })

  it('reports a failure once, and `close` every time', async () => {
    failNext()
    const writer = await opened()
    await writer.submit('a')
    expect(await outcomeOf(writer[Symbol.asyncDispose]())).toBe('storage')
    expect(await outcomeOf(writer[Symbol.asyncDispose]())).toBe('ok')
    expect([await outcomeOf(writer.close()), await outcomeOf(writer.close())]).toEqual(['storage', 'storage'])
  })

  it('rejects with `closed` after the engine was closed, unless a call has', async () => {
    const [one, other] = [await opened(), await opened()]
    for (const writer of [one, other]) await (await writer.submit('a')).ack()
    await engine.hw.close()
    expect(await outcomeOf(one.submit('b'))).toBe('closed')
    expect(await outcomeOf(one[Symbol.asyncDispose]())).toBe('ok')
  })
})

it('disposing of a producer rejects with the failure of a batch that was not awaited', async () => {
  failNext()
  const write = async () => {
    await using producer = stream.producer()
    await producer.submit('a')
    const flushing = producer.flush({ signal: AbortSignal.abort('enough') })
    await flushing.catch(() => {})
  }
  await expect(write()).rejects.toMatchObject({ code: 'storage' })
})

it('tickets that are not awaited cause no unhandled rejection', async () => {
  storage.fail('append', { kind: 'io' })
  const session = await stream.appendSession()
  for (const body of ['a', 'b', 'c']) await session.submit(body).catch(() => {})
  await engine.clock.settle()
  const producer = stream.producer({ recordsMax: 1 })
  for (const body of ['a', 'b', 'c']) await producer.submit(body).catch(() => {})
  await engine.clock.settle()
  storage.heal()
})

it('acks that `appendAll` does not reach after a failure cause no unhandled rejection', async () => {
  await stream.append('first')
  await stream.close()
  expect(await outcomeOf(stream.appendAll(['a', 'b', 'c', 'd']).next())).toBe('stream_closed')
})

it('a value that an asynchronous schema rejects causes no unhandled rejection if a later one throws', async () => {
  const issues = [{ message: 'rejected' }]
  const validate = (value: unknown) => (value === 'later' ? Promise.resolve({ issues }) : { issues })
  const view = stream.json({ '~standard': { version: 1, vendor: 'test', validate } })
  expect(await outcomeOf(view.appendBatch(['later', 'at once']))).toBe('invalid')
})
