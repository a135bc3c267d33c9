import { describe, expect, it } from 'vitest'
import { fenceRecord, trimRecord } from '../../src/index.ts'
import { bodies } from '../support/index.ts'
import { BASIN, parseSse, RECORDS, type Service, startService, startWithStream } from './support.ts'

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

describe('a read that opens within the grace period of a trim', () => {
  async function unaryBodies({ call }: Service, query: string): Promise<string[] | number> {
    const response = await call('GET', `${RECORDS}?${query}`)
    if (response.status !== 200) return response.status
    const { records } = (await response.json()) as { records: { body: string }[] }
    return records.map(({ body }) => body)
  }

  /** A stream whose records were all trimmed, the trim included. */
  async function startTrimmed() {
    const service = await startWithStream()
    const stream = service.hw.basin(BASIN).stream('s')
    await stream.append(['a', 'b'])
    await stream.trim(ALL)
    return { ...service, stream }
  }

  it('sees the trimmed records over HTTP, and later ones do not', async () => {
    const service = await startTrimmed()
    expect(await unaryBodies(service, 'tail_offset=1')).toHaveLength(1)
    await service.stream.append('c')
    expect(await unaryBodies(service, 'seq_num=0')).toEqual(['a', 'b', expect.anything(), 'c'])
    await service.clock.advance(9_999)
    expect(await unaryBodies(service, 'seq_num=1')).toEqual(['b', expect.anything(), 'c'])
    await service.clock.advance(1)
    expect(await unaryBodies(service, 'seq_num=0')).toEqual(['c'])
  })

  it('does not see them in process', async () => {
    const { stream } = await startTrimmed()
    await stream.append('c')
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['c'])
  })
})
