import { expect, it } from 'vitest'
import { Service } from '../../adapters/transfer/service.ts'
import { closeRecord } from '../../src/index.ts'
import { exported, imported, type Kind, openEndpoint } from './support.ts'

const METADATA = { 'content-type': 'application/json', owner: 'ada ✓' }

async function openSource(kind: Kind = 'directory') {
  const source = await openEndpoint({ kind })
  await source.hw.createBasin('basin-a')
  return { ...source, basin: source.basin }
}

it.each([{ at: new Date(Date.UTC(2100, 0, 1, 0, 0, 0, 5)) }, { idleSeconds: 3_600 }, undefined])(
  'keeps metadata and the expiry %o',
  async (expiry) => {
    const { basin, service } = await openSource()
    await basin.createStream('s', {}, { metadata: METADATA, expiry, records: ['1', '2'] })
    const lines = await exported(service)
    const target = await openEndpoint({ kind: 'directory' })
    const warnings: string[] = []
    await imported(target.service, lines, { onWarning: (warning) => warnings.push(warning) })
    const [info] = (await target.basin.listStreams()).items
    expect([info?.metadata, info?.expiry, warnings]).toEqual([METADATA, expiry, []])
    expect(withoutCreation(await exported(target.service))).toBe(withoutCreation(lines))
  },
)

function withoutCreation(lines: string): string {
  return lines.replace(/"created_at":"[^"]*"/, '')
}

it.each<Kind>(['directory', 'server'])('keeps streams closed, into a %s', async (kind) => {
  const { basin, service } = await openSource()
  await basin.createStream('s', {}, { records: ['a', closeRecord()] })
  await basin.createStream('empty', {}, { records: [closeRecord()] })
  const lines = await exported(service)
  const target = await openEndpoint({ kind })
  for (const resume of [false, true]) await imported(target.service, lines, { resume })
  for (const name of ['s', 'empty']) {
    const stream = target.basin.stream(name)
    expect(await stream.checkTail()).toEqual(await basin.stream(name).checkTail())
    await expect(stream.append('more')).rejects.toMatchObject({ code: 'stream_closed' })
  }
  const again = await exported(new Service(target.hw))
  expect(again.match(/"tail":[^}]*"closed":true/g)).toHaveLength(2)
})

it('warns that a stream is open if the record that closed it has expired', async () => {
  const { basin, service, clock } = await openSource()
  await basin.createStream('s', { retentionPolicy: { ageSeconds: 60 } }, { records: ['a', closeRecord()] })
  await clock.advance(120_000)
  const lines = await exported(service)
  const target = await openEndpoint({ kind: 'directory' })
  const warnings: string[] = []
  await imported(target.service, lines, { onWarning: (warning) => warnings.push(warning) })
  expect(warnings).toEqual(['stream s of basin basin-a is open: the record that closed it no longer exists'])
  expect((await target.stream('s').checkTail()).seqNum).toBe(2)
})

it('says what a server does not take', async () => {
  const { basin, service } = await openSource()
  await basin.createStream('s', {}, { metadata: METADATA, records: ['a'] })
  const target = await openEndpoint({ kind: 'server' })
  const warnings: string[] = []
  await imported(target.service, await exported(service), { onWarning: (warning) => warnings.push(warning) })
  expect(warnings).toEqual([
    'stream s of basin basin-a is imported without its metadata and expiry: a server takes none',
  ])
  expect((await target.stream('s').readBatch()).records).toMatchObject([{ body: 'a' }])
})

it('leaves out a stream that has expired since its export', async () => {
  const { basin, service, clock } = await openSource()
  const at = new Date(clock.now() + 60_000)
  await basin.createStream('s', {}, { expiry: { at }, records: ['a'] })
  await basin.createStream('t', {}, { records: ['b'] })
  const lines = await exported(service)
  const target = await openEndpoint({ kind: 'directory' })
  const warnings: string[] = []
  const counts = await imported(target.service, lines, {
    now: at.getTime(),
    onWarning: (warning) => warnings.push(warning),
  })
  expect(warnings).toEqual(['stream s of basin basin-a has expired and is left out'])
  expect(counts).toEqual({ basins: 1, streams: 1, records: 1 })
  expect((await target.basin.listStreams()).items.map(({ name }) => name)).toEqual(['t'])
})
