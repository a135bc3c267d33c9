import 'fake-indexeddb/auto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesystem } from '../../adapters/storage/filesystem/index.ts'
import { indexedDb } from '../../adapters/storage/indexeddb/index.ts'
import { fenceRecord, type Stream, trimRecord } from '../../src/index.ts'
import { bodies, STORAGE_KIND, testStorage } from '../support/index.ts'
import { BASIN, parseSse, RECORDS, type Service, startService, startWithStream } from './support.ts'

const ALL = Number.MAX_SAFE_INTEGER
const REPETITIONS = 100

async function newDirectory() {
  const path = await mkdtemp(join(tmpdir(), 'headwater-trims-'))
  onTestFinished(() => rm(path, { recursive: true, force: true }))
  return filesystem(path, { durability: 'process-crash' })
}

const STORAGES = [
  [STORAGE_KIND, async () => testStorage()],
  ...(STORAGE_KIND === 'memory'
    ? ([
        ['filesystem', newDirectory],
        ['IndexedDB', async () => indexedDb(`trims-${Math.random()}`)],
      ] as const)
    : []),
] as const

/** The numbers and bodies of the records in a response of Server-Sent Events. */
async function eventRecords(response: Response): Promise<string[]> {
  expect(response.status).toBe(200)
  return parseSse(await response.text())
    .filter(({ event }) => event === 'batch')
    .flatMap(({ data }) => JSON.parse(data).records)
    .map(({ seq_num, body, headers }) => `${seq_num} ${headers === undefined ? body : headers[0][1]}`)
}

async function unaryBodies({ call }: Service, query: string): Promise<string[] | number> {
  const response = await call('GET', `${RECORDS}?${query}`)
  if (response.status !== 200) return response.status
  const { records } = (await response.json()) as { records: { body: string }[] }
  return records.map(({ body }) => body)
}

/** A stream whose records were all trimmed, the trim included. */
async function startTrimmed(): Promise<Service & { readonly stream: Stream }> {
  const service = await startWithStream()
  const stream = service.hw.basin(BASIN).stream('s')
  await stream.append(['a', 'b'])
  await stream.trim(ALL)
  return { ...service, stream }
}

describe.each(STORAGES)('on %s', (_, storageOf) => {
  it('a session that opens while its response is appended, trimmed and fenced receives all of it', async () => {
    const service = await startService({}, { storage: await storageOf() })
    await service.hw.createBasin(BASIN, { createStreamOnAppend: true, createStreamOnRead: true })
    for (let i = 0; i < REPETITIONS; i++) {
      const path = `/v1/streams/response-${i}/records?seq_num=0&count=5&wait=60`
      const open = () => service.call('GET', path, { headers: { accept: 'text/event-stream' } })
      const early = open()
      const stream = service.hw.basin(BASIN).stream(`response-${i}`)
      const ended = [
        stream.append(['one', 'two']),
        stream.append('three'),
        stream.append([trimRecord(ALL), fenceRecord('end')]),
      ]
      const meanwhile = open()
      await Promise.all(ended)
      const late = open()
      for (const session of [early, meanwhile, late]) {
        expect(await eventRecords(await session)).toEqual(['0 one', '1 two', '2 three', '3 trim', '4 fence'])
      }
    }
  })
})

describe('a read that opens within the grace period of a trim', () => {
  it('sees the trimmed records over HTTP, and later ones do not', async () => {
    const service = await startTrimmed()
    await service.stream.append('c')
    expect(await unaryBodies(service, 'seq_num=0')).toEqual(['a', 'b', expect.anything(), 'c'])
    await service.clock.advance(9_999)
    expect(await unaryBodies(service, 'seq_num=1')).toEqual(['b', expect.anything(), 'c'])
    await service.clock.advance(1)
    expect(await unaryBodies(service, 'seq_num=0')).toEqual(['c'])
  })

  it('is satisfiable over HTTP although all records are trimmed', async () => {
    const service = await startTrimmed()
    expect(await unaryBodies(service, 'seq_num=0&wait=0')).toHaveLength(3)
    expect(await unaryBodies(service, 'tail_offset=1')).toHaveLength(1)
    expect(await unaryBodies(service, 'seq_num=3')).toBe(416)
    await service.clock.advance('10s')
    expect(await unaryBodies(service, 'seq_num=0')).toBe(416)
  })

  it('does not see them in process', async () => {
    const { stream } = await startTrimmed()
    await stream.append('c')
    expect(bodies(await stream.readBatch({ seqNum: 0 }))).toEqual(['c'])
  })

  it('does not see records that were trimmed before the grace period', async () => {
    const service = await startWithStream()
    const stream = service.hw.basin(BASIN).stream('s')
    await stream.append(['a', 'b', 'c'])
    await stream.trim(1)
    await service.clock.advance('10s')
    await stream.trim(2)
    expect(await unaryBodies(service, 'seq_num=0&count=2')).toEqual(['b', 'c'])
  })

  it('does not see expired records', async () => {
    const service = await startWithStream()
    await service.hw
      .basin(BASIN)
      .stream('s')
      .reconfigure({ retentionPolicy: { ageSeconds: 1 } })
    const stream = service.hw.basin(BASIN).stream('s')
    await stream.append(['a', 'b'])
    await service.clock.advance('1s')
    await stream.trim(ALL)
    expect(await unaryBodies(service, 'seq_num=0')).toHaveLength(1)
  })
})
