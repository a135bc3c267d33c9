import { describe, expect, it } from 'vitest'
import type { BasinInfo, StreamInfo } from '../../src/model/info.ts'
import { timeText } from '../../src/wire/json.ts'
import {
  basinInfoJson,
  basinPageJson,
  metricsJson,
  streamInfoJson,
  streamPageJson,
} from '../../src/wire/json-resources.ts'

const basin: BasinInfo = {
  name: 'my-basin',
  location: 'aws:us-east-1',
  state: 'active',
  createdAt: new Date('2026-01-02T03:04:05.678Z'),
  deletedAt: null,
}
const stream: StreamInfo = {
  name: 'a/"b"',
  createdAt: new Date('2026-01-02T03:04:05.000Z'),
  deletedAt: null,
  cipher: null,
}

const BASIN =
  '{"name":"my-basin","scope":"aws:us-east-1","location":"aws:us-east-1","state":"active","created_at":"2026-01-02T03:04:05.678Z","deleted_at":null}'
const STREAM = '{"name":"a/\\"b\\"","created_at":"2026-01-02T03:04:05Z","deleted_at":null,"cipher":null}'

describe('infos', () => {
  it('contain the members of every generation of the API', () => {
    expect(basinInfoJson(basin)).toBe(BASIN)
  })

  it('describe a basin that is being deleted', () => {
    const deletedAt = new Date('2026-01-02T03:04:06.500Z')
    expect(JSON.parse(basinInfoJson({ ...basin, state: 'deleting', deletedAt }))).toMatchObject({
      state: 'deleting',
      deleted_at: '2026-01-02T03:04:06.5Z',
    })
  })

  it('describe a stream', () => {
    expect(streamInfoJson(stream)).toBe(STREAM)
    const deletedAt = new Date('2026-02-03T00:00:00Z')
    expect(JSON.parse(streamInfoJson({ ...stream, cipher: 'aes-256-gcm', deletedAt }))).toMatchObject({
      cipher: 'aes-256-gcm',
      deleted_at: '2026-02-03T00:00:00Z',
    })
  })
})

describe('pages', () => {
  it('are listed with `has_more`', () => {
    expect(basinPageJson({ items: [basin], hasMore: true })).toBe(`{"basins":[${BASIN}],"has_more":true}`)
    expect(streamPageJson({ items: [stream, stream], hasMore: false })).toBe(
      `{"streams":[${STREAM},${STREAM}],"has_more":false}`,
    )
  })

  it('may be empty', () => {
    expect(basinPageJson({ items: [], hasMore: false })).toBe('{"basins":[],"has_more":false}')
    expect(streamPageJson({ items: [], hasMore: false })).toBe('{"streams":[],"has_more":false}')
  })
})

it.each([
  ['2026-10-20T10:20:30.000Z', '2026-10-20T10:20:30Z'],
  ['2026-10-20T10:20:00.000Z', '2026-10-20T10:20:00Z'],
  ['2026-10-20T00:00:00.100Z', '2026-10-20T00:00:00.1Z'],
  ['2026-10-20T00:00:00.120Z', '2026-10-20T00:00:00.12Z'],
  ['2026-10-20T00:00:00.001Z', '2026-10-20T00:00:00.001Z'],
  ['2026-10-20T02:00:00+02:00', '2026-10-20T00:00:00Z'],
])('%s is encoded as %s', (date, text) => {
  expect(timeText(new Date(date))).toBe(text)
})

describe('metricsJson', () => {
  it('encodes times in seconds', () => {
    const gauge = {
      kind: 'gauge',
      name: 'metered_size',
      unit: 'bytes',
      values: [[60_000, 7]],
    } as const
    const label = { kind: 'label', name: 'active_basins', values: ['a'] } as const
    expect(JSON.parse(metricsJson([gauge, label]))).toEqual({
      values: [
        { gauge: { name: 'metered_size', unit: 'bytes', values: [[60, 7]] } },
        { label: { name: 'active_basins', values: ['a'] } },
      ],
    })
  })
})
