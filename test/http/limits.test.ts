import { describe, expect, test } from 'vitest'
import { createHandler } from '../../adapters/http/index.ts'
import { inputFrame } from './inputs.ts'
import {
  BodyReader,
  errorOf,
  framesOf,
  RECORDS,
  type Service,
  startService,
  startWithStream,
  tailOf,
  Upload,
} from './support.ts'

const JSON_TYPE = { 'content-type': 'application/json' }
const SESSION_TYPE = { 'content-type': 'svcs/proto' }
const MIB = 1_048_576

describe('limits.pendingBodyBytes', () => {
  const REFUSED = {
    status: 429,
    code: 'rate_limited',
    message: `limit exceeded: \`limits.pendingBodyBytes\` is ${2 * MIB}; the request had no effect`,
  }
  const start = () => startWithStream({ limits: { pendingBodyBytes: 2 * MIB } })
  const spaces = (bytes: number) => new Uint8Array(bytes).fill(0x20)
  const record = new TextEncoder().encode('{"records":[{"body":"x"}]}')
  const append = (service: Service, upload: Upload, headers: Record<string, string> = {}) =>
    service.call('POST', RECORDS, { headers: { ...JSON_TYPE, ...headers }, body: upload.body })

  test.each([0, 2 * MIB - 1, Number.NaN])('rejects the value %d', async (pendingBodyBytes) => {
    const { hw } = await startService()
    expect(() => createHandler(hw, { limits: { pendingBodyBytes } })).toThrow(
      /^limits.pendingBodyBytes must be at least 2097152/,
    )
  })

  test('slow uploads beyond it are rejected, and the others succeed', async () => {
    const service = await start()
    const uploads = [new Upload(), new Upload(), new Upload()]
    const responses = uploads.map((upload) => append(service, upload))
    uploads[0]!.write(spaces(MIB))
    uploads[1]!.write(spaces(MIB - 100))
    await service.clock.settle()
    uploads[2]!.write(spaces(101))
    expect(await errorOf(await responses[2]!)).toEqual(REFUSED)
    expect(uploads[2]!.isCancelled).toBe(true)
    for (const upload of uploads.slice(0, 2)) {
      upload.write(record)
      upload.end()
      await service.clock.settle()
    }
    for (const response of responses.slice(0, 2)) expect((await response).status).toBe(200)
    expect(await tailOf(service)).toBe(2)
    // All has been given back.
    const whole = new Upload()
    const last = append(service, whole)
    whole.write(spaces(2 * MIB - 100), record)
    whole.end()
    expect((await last).status).toBe(200)
  })

  test('counts the incomplete frame of an append session', async () => {
    const service = await start()
    const frame = inputFrame(['x'.repeat(MIB - 100)])
    const open = async (upload: Upload) => {
      const response = await service.call('POST', RECORDS, { headers: SESSION_TYPE, body: upload.body })
      return new BodyReader(response)
    }
    const uploads = [new Upload(), new Upload(), new Upload()]
    const readers: BodyReader[] = []
    for (const upload of uploads) {
      readers.push(await open(upload))
      upload.write(frame.subarray(0, 900_000))
      await service.clock.settle()
    }
    await readers[2]!.ended
    const [terminal] = await framesOf(readers[2]!.bytes)
    expect(terminal).toMatchObject({ kind: 'terminal', status: 429 })
    expect(uploads[2]!.isCancelled).toBe(true)
    // The others continue: complete frames are not counted.
    for (const [number, upload] of uploads.slice(0, 2).entries()) {
      upload.write(frame.subarray(900_000))
      for (let i = 0; i < 3; i++) upload.write(frame)
      upload.end()
      await readers[number]!.ended
      expect((await framesOf(readers[number]!.bytes)).map(({ kind }) => kind)).toEqual(
        Array(4).fill('message'),
      )
    }
    expect(await tailOf(service)).toBe(8)
    expect(service.hw.stats().openSessions).toBe(0)
  })
})
