import { expect, test } from 'vitest'
import { BASIN, BodyReader, RECORDS, startWithStream } from './support.ts'

/** The samples of the text by their names and labels. */
function samplesOf(text: string): Map<string, number> {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(' ')
      return [line.slice(0, at), Number(line.slice(at + 1))]
    }),
  )
}

test('reports totals and open sessions', async () => {
  const { call, clock } = await startWithStream()
  await call('POST', RECORDS, { json: { records: [{ body: 'one' }, { body: 'two' }] } })
  await call('POST', RECORDS, { json: { records: [{ body: 'three' }] } })
  await call('POST', RECORDS, { json: { records: [], match_seq_num: 0 } })
  await call('GET', `${RECORDS}?seq_num=0`)
  const live = new BodyReader(await call('GET', RECORDS, { headers: { accept: 'text/event-stream' } }))
  await clock.settle()
  await call('GET', '/v1/streams')

  const response = await call('GET', '/metrics')
  expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await response.text()
  const samples = samplesOf(text)
  const expected = {
    headwater_open_reads: 1,
    headwater_waiting_reads: 1,
    headwater_pending_appends: 0,
    'headwater_operations_total{operation="create-basin"}': 1,
    'headwater_operations_total{operation="create-stream"}': 1,
    'headwater_operations_total{operation="list-streams"}': 1,
    headwater_appends_total: 2,
    headwater_appended_records_total: 3,
    headwater_appended_bytes_total: 3 * 8 + 11,
    headwater_unary_reads_total: 1,
    headwater_streaming_reads_total: 1,
    headwater_read_batches_total: 1,
    headwater_read_bytes_total: 3 * 8 + 11,
    'headwater_append_batch_records_bucket{le="1"}': 1,
    'headwater_append_batch_records_bucket{le="2"}': 2,
    'headwater_append_batch_records_bucket{le="+Inf"}': 2,
    headwater_append_batch_records_sum: 3,
    headwater_append_batch_bytes_sum: 3 * 8 + 11,
    headwater_append_ack_latency_seconds_count: 2,
    headwater_append_permit_latency_seconds_count: 2,
  }
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, samples.get(name)]))).toEqual(expected)
  expect(text).not.toContain(BASIN)
  const head = '# HELP headwater_open_reads Read sessions and long polls that are open\n'
  expect(text).toContain(`${head}# TYPE headwater_open_reads gauge\nheadwater_open_reads 1\n# HELP `)
  await live.cancel()
})

test('needs a token that permits account-metrics, unless it is public', async () => {
  const service = await startWithStream()
  const issue = (id: string, ops: readonly ('account-metrics' | 'read')[]) =>
    service.hw.issueAccessToken({ id, scope: { ops } })
  const get = async (token: string, options = {}) =>
    (
      await service.with({ auth: 'token', ...options })('GET', '/metrics', {
        headers: { authorization: `Bearer ${token}` },
      })
    ).status
  expect(await get('none')).toBe(401)
  expect(await get(await issue('reader', ['read']))).toBe(403)
  expect(await get(await issue('scraper', ['account-metrics']))).toBe(200)
  expect(await get('none', { publicMetrics: true })).toBe(200)
})
