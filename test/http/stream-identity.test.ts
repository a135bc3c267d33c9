import { describe, expect, it } from 'vitest'
import { BASIN, type CallOptions, errorOf, RECORDS, startWithStream } from './support.ts'

const ID = 'headwater-stream-id'
const SESSION = { headers: { 'content-type': 'svcs/proto', accept: 'application/protobuf' } }
const EVENTS = { headers: { accept: 'text/event-stream' } }
const APPEND = { json: { records: [{ body: 'b' }] } }

/** Requests for the records of a stream of two. */
const REQUESTS: readonly [what: string, method: string, path: string, options: CallOptions][] = [
  ['an append', 'POST', RECORDS, APPEND],
  ['an append session', 'POST', RECORDS, { ...SESSION, body: '' }],
  ['a unary read', 'GET', `${RECORDS}?seq_num=0`, {}],
  ['a read session in frames', 'GET', `${RECORDS}?seq_num=0&count=1`, SESSION],
  ['a read session by events', 'GET', `${RECORDS}?seq_num=0&count=1`, EVENTS],
  ['a check of the tail', 'GET', `${RECORDS}/tail`, {}],
]

describe.each(REQUESTS)('%s', (_what, method, path, options) => {
  async function startWithRecords() {
    const service = await startWithStream()
    const append = () => service.hw.basin(BASIN).stream('s').append(['a', 'b'])
    await append()
    const replace = async () => {
      await service.hw.basin(BASIN).stream('s').delete()
      await service.hw.basin(BASIN).createStream('s')
      await append()
    }
    /** The same request for the stream with this identity. */
    const request = async (id?: string | null) => {
      const headers = { ...options.headers, ...(id && { [ID]: id }) }
      const response = await service.call(method, path, { ...options, headers })
      return { response, id: response.headers.get(ID) }
    }
    return { ...service, replace, request }
  }

  it('states the identity of the stream, which the next stream of the name does not have', async () => {
    const { replace, request } = await startWithRecords()
    const { id } = await request()
    expect(id).toMatch(/^[\w-]+$/)
    expect((await request(id)).id).toBe(id)
    await replace()
    expect((await request()).id).not.toBe(id)
  })

  it('does not find another stream than the one that it names', async () => {
    const { hw, replace, request } = await startWithRecords()
    const { id } = await request()
    await replace()
    const tail = await hw.basin(BASIN).stream('s').checkTail()
    const { response } = await request(id)
    expect(await errorOf(response)).toMatchObject({ status: 404, code: 'stream_not_found' })
    expect(await hw.basin(BASIN).stream('s').checkTail()).toEqual(tail)
  })
})

it('a request for a stream that was deleted creates none', async () => {
  const { hw, call } = await startWithStream()
  await hw.basin(BASIN).reconfigure({ createStreamOnAppend: true })
  const first = await call('POST', RECORDS, APPEND)
  await hw.basin(BASIN).stream('s').delete()
  const headers = { [ID]: first.headers.get(ID)! }
  expect((await call('POST', RECORDS, { ...APPEND, headers })).status).toBe(404)
  expect(await hw.basin(BASIN).stream('s').exists()).toBe(false)
  expect((await call('POST', RECORDS, APPEND)).status).toBe(200)
})
