import { createElement } from 'react'
import { renderToString } from 'react-dom/server'
import { expect, expectTypeOf, test } from 'vitest'
import { type RecordSource, useStream } from '../../adapters/react/index.ts'
import { memory } from '../../adapters/storage/memory/index.ts'
import { type JsonRecord, open, type SequencedRecord, type Stream, type TextRecord } from '../../src/index.ts'

function Reader({ stream, recordsMax }: { readonly stream?: Stream; readonly recordsMax?: number }) {
  const { records, status, error } = useStream(stream, { seqNum: 0 }, { recordsMax })
  return createElement('p', null, `${status} ${records.length} ${error}`)
}

test('renders on a server without records and without a session', async () => {
  await using hw = await open({ storage: memory() })
  const stream = hw.basin('my-app').stream('chat')
  await stream.append('a')
  expect(renderToString(createElement(Reader, { stream }))).toBe('<p>loading 0 undefined</p>')
  expect(renderToString(createElement(Reader))).toBe('<p>loading 0 undefined</p>')
  expect(hw.stats().openReads).toBe(0)
})

test.each([0, -1, Number.NaN])('rejects recordsMax %d', (recordsMax) => {
  const render = () => renderToString(createElement(Reader, { recordsMax }))
  expect(render).toThrow(
    expect.objectContaining({ code: 'invalid', message: `recordsMax must be at least 1, not ${recordsMax}` }),
  )
})

test('handles are equal if they make the same calls', async () => {
  const storage = memory()
  await using hw = await open({ storage })
  await using other = await open({ storage })
  const key = new Uint8Array(32).fill(1)
  const handle = (of = hw, name = 'chat', encryptionKey?: Uint8Array) =>
    of.basin('my-app').stream(name, { encryptionKey })
  const stream = handle()
  expect(stream.equals(handle())).toBe(true)
  expect(handle(hw, 'chat', key).equals(handle(hw, 'chat', key.slice()))).toBe(true)
  const different = [
    handle(other),
    handle(hw, 'other'),
    handle(hw, 'chat', key),
    hw.basin('your-app').stream('chat'),
    hw.as('a-token').basin('my-app').stream('chat'),
    undefined,
  ]
  for (const candidate of different) expect(stream.equals(candidate)).toBe(false)
  const schema = {
    '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
  } as const
  expect(stream.json(schema).equals(handle().json(schema))).toBe(true)
  for (const candidate of [stream, stream.json(), handle(other).json(schema)]) {
    expect(stream.json(schema).equals(candidate)).toBe(false)
  }
  expect(handle(hw, 'chat', key).equals(handle(hw, 'chat', key.with(0, 2)))).toBe(false)
})

test('has records of the type that the stream reads', () => {
  function Types({
    stream,
    source,
  }: {
    readonly stream: Stream
    readonly source: RecordSource<{ readonly id: number }>
  }) {
    expectTypeOf(useStream(stream).records).toEqualTypeOf<readonly TextRecord[]>()
    expectTypeOf(useStream(stream, {}, { as: 'bytes' }).records).toEqualTypeOf<readonly SequencedRecord[]>()
    expectTypeOf(useStream(stream.json<number>()).records).toEqualTypeOf<readonly JsonRecord<number>[]>()
    expectTypeOf(useStream(source).records).toEqualTypeOf<readonly { readonly id: number }[]>()
    // @ts-expect-error: values have no format
    useStream(stream.json(), {}, { as: 'bytes' })
    return null
  }
  expect(Types).toBeTypeOf('function')
})
