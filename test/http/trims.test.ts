import { expect, it } from 'vitest'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { BASIN, parseSse, RECORDS, startService } from './support.ts'

const ALL = Number.MAX_SAFE_INTEGER

/** The numbers and bodies of the records in a response of Server-Sent Events. */
async function eventRecords(response: Response): Promise<string[]> {
  expect(response.status).toBe(200)
  return parseSse(await response.text())
    .filter(({ event }) => event === 'batch')
    .flatMap(({ data }) => JSON.parse(data).records)
    .map(({ seq_num, body, headers }) => `${seq_num} ${headers === undefined ? body : headers[0][1]}`)
}

it('a session that opens while its response is appended, trimmed and fenced receives all of it', async () => {
  const service = await startService()
  await service.hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
  const open = () =>
    service.call('GET', `${RECORDS}?seq_num=0&count=5&wait=60`, { headers: { accept: 'text/event-stream' } })
  const stream = service.hw.basin(BASIN).stream('s')
  const sessions = [open()]
  const ended = [stream.append(['one', 'two'])]
  sessions.push(open())
  ended.push(stream.append('three'))
  sessions.push(open())
  ended.push(stream.append([trimRecord(ALL), fenceRecord('end')]))
  sessions.push(open())
  await Promise.all(ended)
  sessions.push(open())
  for (const session of sessions) {
    expect(await eventRecords(await session)).toEqual(['0 one', '1 two', '2 three', '3 trim', '4 fence'])
  }
})
