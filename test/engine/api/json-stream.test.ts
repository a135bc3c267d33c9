import { firstValueFrom, take, toArray } from 'rxjs'
import { afterEach, beforeEach, describe, expect, expectTypeOf, it } from 'vitest'
import { memory } from '../../../adapters/storage/memory/index.ts'
import type { StandardSchema } from '../../../src/api/json-codec.ts'
import { type Engine, HeadwaterError, type JsonStream, open, type Stream } from '../../../src/index.ts'
import { macrotask } from '../../../src/runtime/macrotask.ts'

interface Order {
  readonly id: string
  readonly total: number
}

let hw: Engine
let stream: Stream
beforeEach(async () => {
  hw = await open({ storage: memory() })
  stream = hw.basin('shop').stream('orders')
})
afterEach(() => hw.close())

function schema<Input, Output>(
  validate: StandardSchema<Input, Output>['~standard']['validate'],
): StandardSchema<Input, Output> {
  return { '~standard': { version: 1, vendor: 'test', validate } }
}

function orderOf(
  value: unknown,
): Awaited<ReturnType<StandardSchema<unknown, Order>['~standard']['validate']>> {
  const { id, total = 0 } = Object(value) as Partial<Order>
  if (typeof id !== 'string') return { issues: [{ message: 'expected a string', path: ['id'] }] }
  if (typeof total !== 'number') {
    return { issues: [{ message: 'expected a number', path: [{ key: 'total' }] }] }
  }
  return { value: { id, total } }
}

/** Gives the missing total a default, as a transformation. */
const ORDER = schema<{ id: string; total?: number }, Order>(orderOf)

async function failure(call: () => unknown): Promise<HeadwaterError> {
  try {
    await call()
  } catch (error) {
    if (HeadwaterError.is(error)) return error
    throw error
  }
  throw new Error('the call succeeded')
}

async function bodies(): Promise<string[]> {
  return (await stream.readBatch({ seqNum: 0 })).records.map(({ body }) => body)
}

async function values<Value>(json: JsonStream<Value, never>, count: number): Promise<Value[]> {
  const found: Value[] = []
  for await (const { value } of json.read({ seqNum: 0, count })) found.push(value)
  return found
}

describe('appending JSON values', () => {
  it.each([[{ id: 'a' }], ['text'], [5], [false], [null], [[1, 'two']], [[]], [{}], ['\ud800']])(
    'stores one record for %j, and reading returns it',
    async (value) => {
      const json = stream.json()
      const ack = await json.append(value)
      expect([ack.start.seqNum, ack.end.seqNum]).toEqual([0, 1])
      expect((await json.readBatch({ seqNum: 0 })).records.map((record) => record.value)).toEqual([value])
    },
  )

  it('stores several values as one batch', async () => {
    const json = stream.json<Order>()
    const ack = await json.appendBatch([
      { id: 'a', total: 1 },
      { id: 'b', total: 2 },
    ])
    expect([ack.start.seqNum, ack.end.seqNum]).toEqual([0, 2])
    expect(await bodies()).toEqual(['{"id":"a","total":1}', '{"id":"b","total":2}'])
  })

  it('accepts conditions and a signal', async () => {
    const json = stream.json()
    await json.append(1, { matchSeqNum: 0 })
    expect(await failure(() => json.append(2, { matchSeqNum: 0 }))).toMatchObject({ seqNum: 1 })
    expect(await failure(() => json.append(2, { matchSeqnum: 0 } as never))).toMatchObject({
      code: 'invalid',
    })
    await expect(json.append(2, { signal: AbortSignal.abort('stop') })).rejects.toBe('stop')
    expect(await bodies()).toEqual(['1'])
  })

  const cyclic: Record<string, unknown> = {}
  cyclic.self = cyclic
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['a function', () => 1],
    ['a BigInt', 1n],
    ['a cyclic object', cyclic],
    ['NaN', Number.NaN],
    ['a nested Infinity', { a: [Number.POSITIVE_INFINITY] }],
    ['undefined in an array', [undefined]],
    ['a hole in an array', new Array(1)],
    ['a Map', new Map([['a', 1]])],
    ['a Uint8Array', Uint8Array.of(1)],
    ['an invalid Date', new Date(Number.NaN)],
    ['an object whose class has no constructor', Object.create(Object.create(Object.create(null)))],
    [
      'an object whose toJSON throws',
      {
        toJSON() {
          throw new Error('no')
        },
      },
    ],
  ])('rejects %s as `invalid`, and stores nothing of its batch', async (_, value) => {
    const json = stream.json()
    for (const call of [() => json.append(value), () => json.appendBatch(['first', value])]) {
      expect(await failure(call)).toMatchObject({ code: 'invalid', field: 'value' })
    }
    await expect(stream.checkTail()).rejects.toMatchObject({ code: 'basin_not_found' })
  })

  it.each([[5], ['ab'], [undefined], [{ length: 1, 0: 'a' }]])(
    'needs an array for a batch, not %j',
    async (values) => {
      expect(await failure(() => stream.json().appendBatch(values as never))).toMatchObject({
        code: 'invalid',
        field: 'values',
      })
    },
  )

  it('appends each value of an iterable, arrays too', async () => {
    const ends: number[] = []
    for await (const { end } of stream.json().appendAll([{ id: 'a' }, [1, 2]])) ends.push(end.seqNum)
    expect(ends).toEqual([1, 2])
    expect(await bodies()).toEqual(['{"id":"a"}', '[1,2]'])
  })

  it('ends appendAll at a value that is not JSON, after the acks before it', async () => {
    const ends: number[] = []
    const error = await failure(async () => {
      for await (const { end } of stream.json().appendAll([1, undefined, 3])) ends.push(end.seqNum)
    })
    expect([ends, error.code]).toEqual([[1], 'invalid'])
    expect(await bodies()).toEqual(['1'])
  })
})

describe('reading JSON values', () => {
  it('returns headers as strings, and skips commands', async () => {
    await stream.append([{ body: '1', headers: [['kind', 'é']] }, { body: '2' }])
    await stream.fence('writer')
    const json = stream.json<number>()
    const { records, lastSeqNum } = await json.readBatch({ seqNum: 0 })
    expect(records).toMatchObject([
      { seqNum: 0, headers: [['kind', 'é']], value: 1 },
      { seqNum: 1, headers: [], value: 2 },
    ])
    expect(lastSeqNum).toBe(2)
    expect((await json.readBatch({ seqNum: 2 })).records).toEqual([])
  })

  it('follows: as an iterable, in batches, in events and as observables', async () => {
    const json = stream.json<number>()
    await json.appendBatch([1, 2])
    const following = values(json as JsonStream<number, never>, 3)
    const observed = firstValueFrom(json.follow({ seqNum: 0 }).records$.pipe(take(3), toArray()))
    const batched = firstValueFrom(json.follow({ seqNum: 0 }).batches$)
    await json.append(3)
    expect(await following).toEqual([1, 2, 3])
    expect((await observed).map(({ value }) => value)).toEqual([1, 2, 3])
    expect((await batched).records.map(({ value }) => value)).toContain(1)
    for await (const event of json.follow({ seqNum: 0 }).events()) {
      expect(event).toMatchObject({ kind: 'batch', batch: { lastSeqNum: 2 } })
      break
    }
  })

  it.each<[string, string | Uint8Array]>([
    ['not JSON', '{id'],
    ['empty', ''],
    ['not UTF-8', Uint8Array.of(0x22, 0xff, 0x22)],
  ])('ends at a record that is %s with `undecodable_record` and its sequence number', async (_, body) => {
    await stream.json().append('fine')
    await stream.append({ body })
    await stream.json().append('fine again')
    const json = stream.json()
    const expected = { code: 'undecodable_record', seqNum: 1 }
    expect(await failure(() => json.readBatch({ seqNum: 0 }))).toMatchObject(expected)
    expect(await failure(() => values(json as JsonStream<unknown, never>, 3))).toMatchObject(expected)
    const observed = firstValueFrom(json.follow({ seqNum: 1 }).records$)
    expect(await failure(() => observed)).toMatchObject(expected)
    expect((await json.readBatch({ seqNum: 2 })).records).toMatchObject([{ value: 'fine again' }])
    expect(hw.stats().openReads).toBe(0)
  })

  it('accepts a signal, and no other option', async () => {
    const json = stream.json()
    await expect(json.readBatch({ seqNum: 0 }, { signal: AbortSignal.abort('stop') })).rejects.toBe('stop')
    expect((await failure(() => json.readBatch({ tailOffset: 0 }, { as: 'bytes' } as never))).code).toBe(
      'invalid',
    )
    expect((await failure(() => json.follow({}, null as never))).code).toBe('invalid')
  })
})

describe('a JSON stream with a schema', () => {
  it('appends and returns its output', async () => {
    const orders = stream.json(ORDER)
    expectTypeOf(orders).toEqualTypeOf<JsonStream<Order, { id: string; total?: number }>>()
    await orders.append({ id: 'a' })
    expect(await bodies()).toEqual(['{"id":"a","total":0}'])
    expect((await orders.readBatch({ seqNum: 0 })).records[0]?.value).toEqual({ id: 'a', total: 0 })
  })

  it('rejects a value that does not match, before anything is appended', async () => {
    const orders = stream.json(ORDER)
    const bad = { id: 'b', total: 'x' } as never
    const error = await failure(() => orders.appendBatch([{ id: 'a' }, bad]))
    expect(error).toMatchObject({ code: 'invalid', field: 'value' })
    expect(error.message).toBe('the value does not match the schema: `total`: expected a number')
    expect(error.cause).toMatchObject([{ message: 'expected a number' }])
    await expect(stream.checkTail()).rejects.toMatchObject({ code: 'basin_not_found' })
  })

  it('ends at a record that does not match with `undecodable_record` and its sequence number', async () => {
    await stream.json().appendBatch([{ id: 'a' }, { total: 1 }])
    const error = await failure(() => stream.json(ORDER).readBatch({ seqNum: 0 }))
    expect(error).toMatchObject({ code: 'undecodable_record', seqNum: 1 })
    expect(error.message).toBe('record 1 does not match the schema: `id`: expected a string')
  })

  it('keeps the order of the calls while it validates asynchronously', async () => {
    const waiting = new Map<unknown, () => void>()
    // Only strings wait.
    const slow = schema<unknown, unknown>((value) =>
      typeof value === 'string'
        ? new Promise((resolve) => waiting.set(value, () => resolve({ value })))
        : { value },
    )
    const json = stream.json(slow)
    const acks = [json.append('a'), json.append(1), json.append('b'), json.append(2)]
    waiting.get('b')!()
    waiting.get('a')!()
    expect((await Promise.all(acks)).map(({ start }) => start.seqNum)).toEqual([0, 1, 2, 3])
    expect(await bodies()).toEqual(['"a"', '1', '"b"', '2'])
  })

  const stuck = schema<string, string>((value) => (value === 'a' ? { value } : new Promise(() => {})))
  type Calls = Readonly<Record<string, (signal: AbortSignal) => Promise<unknown>>>
  /** Calls that wait for the schema. */
  const waiting = async (): Promise<Calls> => {
    const json = stream.json(stuck)
    const [session, producer] = [await json.appendSession(), json.producer()]
    const appending = async (signal: AbortSignal) => {
      const acks = json.appendAll(['a', 'stuck'], { signal })
      await acks.next()
      await acks.next()
    }
    return {
      append: (signal) => json.append('stuck', { signal }),
      appendAll: appending,
      'session.submit': (signal) => session.submit('stuck', { signal }),
      'producer.submit': (signal) => producer.submit('stuck', { signal }),
    }
  }

  it.each(['append', 'appendAll', 'session.submit', 'producer.submit'])(
    'stops waiting for an asynchronous schema on the signal and with the engine: %s',
    async (name) => {
      const ending = new AbortController()
      const aborted = (await waiting())[name]!(ending.signal)
      const closed = failure(() => waiting().then((calls) => calls[name]!(new AbortController().signal)))
      const rejected = expect(aborted).rejects.toBe('stop')
      await macrotask()
      ending.abort('stop')
      await rejected
      await hw.close()
      expect((await closed).code).toBe('closed')
    },
  )

  it('stops waiting for an asynchronous schema when appendAll is left', async () => {
    const left = stream.json(stuck).appendAll(['a', 'stuck'])
    await left.next()
    const pending = left.next()
    expect(await left.return(undefined)).toEqual({ done: true, value: undefined })
    expect(await pending).toEqual({ done: true, value: undefined })
    expect(await bodies()).toEqual(['"a"'])
  })

  it.each([
    [{}],
    [null],
    [5],
    [{ '~standard': { version: 2, validate: () => {} } }],
    [{ '~standard': null }],
  ])('must be a Standard Schema, not %j', async (schema) => {
    const error = await failure(() => stream.json(schema as never))
    expect(error).toMatchObject({ code: 'invalid', field: 'schema' })
  })
})
