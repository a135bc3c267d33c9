import { gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { encodeMessageFrame } from '../../src/wire/session-frames.ts'
import { HOSTILE_ZSTD, rawBlock, zstdFrame } from '../wire/zstd-data.ts'
import { inputFrame, inputMessage } from './inputs.ts'
import { ackOf, bytesOf, errorOf, framesOf, RECORDS, startWithStream, tailOf, Upload } from './support.ts'

const BOMB = gzipSync(new Uint8Array(64 * 1024 * 1024))
const REASONS = { 'too-large': 'data decompresses to more than', malformed: 'data is malformed: ' }

const HOSTILE = [
  ...HOSTILE_ZSTD.map(([name, data, reason]) => ['zstd', name, data, reason] as const),
  ['gzip', '64 MiB', BOMB, 'too-large'],
  ['gzip', 'a truncated stream', gzipSync('{"records":[{}]}').subarray(0, -1), 'malformed'],
] as const

describe.each(HOSTILE)('hostile %s data: %s', (coding, _name, data, reason) => {
  test.each([
    ['application/json', 'bad_json'],
    ['application/protobuf', 'bad_proto'],
  ])('is rejected as the body of a request: %s', async (type, code) => {
    const service = await startWithStream()
    const headers = { 'content-type': type, 'content-encoding': coding }
    const response = await service.call('POST', RECORDS, { body: data, headers })
    expect(await errorOf(response)).toEqual({
      status: 400,
      code,
      message: expect.stringContaining(`${coding} ${REASONS[reason]}`),
    })
    expect(await tailOf(service)).toBe(0)
    expect(service.errors).toEqual([])
  })

  test('ends an append session after the acks of earlier frames', async () => {
    const service = await startWithStream()
    const upload = new Upload()
    upload.write(
      inputFrame(['before']),
      encodeMessageFrame(data, { compression: coding }),
      inputFrame(['after']),
    )
    const headers = { 'content-type': 's2s/proto' }
    const frames = await framesOf(
      await bytesOf(await service.call('POST', RECORDS, { body: upload.body, headers })),
    )
    expect(frames).toHaveLength(2)
    expect(await ackOf(frames[0]!)).toMatchObject({ end: 1 })
    const last = frames[1]!
    expect(last).toMatchObject({ kind: 'terminal', status: 400 })
    expect(JSON.parse('body' in last ? last.body : '')).toEqual({
      code: 'bad_frame',
      message: expect.stringContaining(`${coding} ${REASONS[reason]}`),
    })
    await service.clock.settle()
    expect(upload.isCancelled).toBe(true)
    expect(await tailOf(service)).toBe(1)
    expect(service.errors).toEqual([])
    expect(service.hw.stats()).toMatchObject({ openSessions: 0, pendingAppends: 0, appendBytesInFlight: 0 })
  })
})

test('a window beyond the largest message is accepted and costs no memory', async () => {
  const service = await startWithStream()
  const data = zstdFrame({ window: 0xff, blocks: [rawBlock(inputMessage(['a']), true)] })
  const upload = new Upload()
  upload.write(encodeMessageFrame(data, { compression: 'zstd' }))
  upload.end()
  const headers = { 'content-type': 's2s/proto' }
  const [frame] = await framesOf(
    await bytesOf(await service.call('POST', RECORDS, { body: upload.body, headers })),
  )
  expect(await ackOf(frame!)).toMatchObject({ end: 1 })
})
