import { expect, it } from 'vitest'
import { startWithStream } from './support.ts'

const STATUS = 'headwater-status'
const RECORDS = '/v1/streams/s/records'

it.each([
  [404, 'GET', '/v1/streams/missing/records', {}],
  [404, 'GET', '/v1/basins/missing-basin', {}],
  [409, 'POST', '/v1/basins', { json: { basin: 'test-basin' } }],
  [412, 'POST', RECORDS, { json: { records: [{ body: 'a' }], match_seq_num: 7 } }],
  [416, 'GET', `${RECORDS}?seq_num=9`, {}],
])(
  'the status %i of %s %s is in a header if the request asks for it',
  async (status, method, path, options) => {
    const { call } = await startWithStream()
    const plain = await call(method, path, options)
    const asked = await call(method, path, { ...options, headers: { [STATUS]: 'ok' } })
    expect([plain.status, plain.headers.get(STATUS)]).toEqual([status, null])
    expect([asked.status, asked.headers.get(STATUS)]).toEqual([200, String(status)])
    expect(await asked.text()).toBe(await plain.text())
    expect(plain.headers.get('cache-control')).toBeNull()
    expect(asked.headers.get('cache-control')).toBe('no-store')
    expect(asked.headers.get('vary')?.split(', ')).toContain(STATUS)
  },
)

it('other failures are failures, and successes have no such header', async () => {
  const { call } = await startWithStream()
  const headers = { [STATUS]: 'ok' }
  expect((await call('GET', `${RECORDS}?seq_num=x`, { headers })).status).toBe(400)
  expect((await call('GET', `${RECORDS}/tail`, { headers })).headers.get(STATUS)).toBeNull()
})

it('a failure in a header keeps what else the reply varies with', async () => {
  const { with: handlerWith } = await startWithStream()
  const call = handlerWith({ auth: 'none', cors: true })
  const reply = await call('GET', '/v1/streams/missing/records', { headers: { [STATUS]: 'ok' } })
  expect(reply.headers.get('vary')).toBe(`origin, ${STATUS}`)
})
