import { AppendInput, AppendRecord, RangeNotSatisfiableError } from '@s2-dev/streamstore'
import { describe, expect, it } from 'vitest'
import { bodies, longText, strings } from './records.ts'
import { basinOfFile, FETCH, serviceOfFile } from './support.ts'

const { server } = await serviceOfFile()
const basin = await basinOfFile(server.url, FETCH)

/** Records 0 to 4, at 1000, 2000, ... milliseconds. */
async function fiveRecords() {
  const stream = await basin.stream()
  const records = [0, 1, 2, 3, 4].map((i) =>
    AppendRecord.string({ body: `${i}`, timestamp: (i + 1) * 1_000, headers: [['n', `${i}`]] }),
  )
  await stream.append(AppendInput.create(records))
  return stream
}

const tail = { seqNum: 5, timestamp: new Date(5_000) }

describe('read', () => {
  it.each([
    ['a timestamp', { timestamp: 2_001 }, ['2', '3', '4']],
    ['a date', { timestamp: new Date(4_000) }, ['3', '4']],
    ['an offset from the tail', { tailOffset: 1 }, ['4']],
  ])('starts at %s', async (_, from, expected) => {
    const stream = await fiveRecords()
    const batch = await stream.read({ start: { from } })
    expect(bodies(batch.records)).toEqual(expected)
    expect(batch.tail).toEqual(tail)
  })

  it.each([
    ['bytes', { limits: { bytes: 2 * 13 } }, ['0', '1']],
    ['a date', { untilTimestamp: new Date(3_001) }, ['0', '1', '2']],
    ['whichever bound is first', { limits: { count: 4 }, untilTimestamp: 2_000 }, ['0']],
    ['no records', { limits: { count: 0 } }, []],
  ])('stops at %s', async (_, stop, expected) => {
    const stream = await fiveRecords()
    const { records } = await stream.read({ start: { from: { seqNum: 0 } }, stop })
    expect(bodies(records)).toEqual(expected)
  })

  it('returns headers, as text and as bytes', async () => {
    const stream = await fiveRecords()
    const text = await stream.read({ start: { from: { seqNum: 1 } } })
    expect(text.records[0]).toEqual({
      seqNum: 1,
      timestamp: new Date(2_000),
      body: '1',
      headers: [['n', '1']],
    })
    const bytes = await stream.read({ start: { from: { seqNum: 1 } } }, { as: 'bytes' })
    expect(bytes.records[0]).toEqual({
      seqNum: 1,
      timestamp: new Date(2_000),
      body: Uint8Array.of(0x31),
      headers: [[Uint8Array.of(0x6e), Uint8Array.of(0x31)]],
    })
  })

  it.each([
    ['the tail', {}],
    ['the tail, clamped', { from: { seqNum: 6 }, clamp: true }],
  ])('rejects a start at %s with 416 and the tail', async (_, start) => {
    const stream = await fiveRecords()
    const reading = stream.read({ start })
    await expect(reading).rejects.toBeInstanceOf(RangeNotSatisfiableError)
    await expect(reading).rejects.toMatchObject({ status: 416, tail })
  })

  it('returns nothing from an empty stream', async () => {
    const stream = await basin.stream()
    for (const from of [{ seqNum: 0 }, { timestamp: 0 }, { tailOffset: 10 }]) {
      await expect(stream.read({ start: { from } })).rejects.toMatchObject({
        status: 416,
        tail: { seqNum: 0, timestamp: new Date(0) },
      })
    }
  })

  it('rejects a start beyond the tail, unless clamped', async () => {
    const stream = await fiveRecords()
    const start = { from: { seqNum: 6 } }
    await expect(stream.read({ start, stop: { waitSecs: 60 } })).rejects.toMatchObject({ status: 416, tail })
    const clamped = stream.read({ start: { ...start, clamp: true }, stop: { waitSecs: 60 } })
    await stream.append(strings('waited for'))
    expect(bodies((await clamped).records)).toEqual(['waited for'])
  })

  it('waits at the tail for a record', async () => {
    const stream = await fiveRecords()
    const reading = stream.read({ start: { from: { seqNum: 5 } }, stop: { waitSecs: 60 } })
    const ack = await stream.append(strings('new'))
    const batch = await reading
    expect(bodies(batch.records)).toEqual(['new'])
    // Absent if the append was faster than the read.
    expect([undefined, ack.tail.seqNum]).toContain(batch.tail?.seqNum)
  })

  it('returns nothing if nothing is appended in the requested time', async () => {
    const stream = await fiveRecords()
    const batch = await stream.read({ stop: { waitSecs: 1 } })
    expect(batch.records).toEqual([])
  })

  it('returns at most 1,000 records and 1 MiB', async () => {
    const many = await basin.stream()
    for (let i = 0; i < 2; i++) await many.append(strings(...Array.from({ length: 600 }, () => 'x')))
    const first = await many.read({ start: { from: { seqNum: 0 } }, stop: { limits: { count: 2_000 } } })
    expect(first.records.length).toBe(1_000)
    const large = await basin.stream()
    for (let i = 0; i < 3; i++) await large.append(strings(longText(400_000)))
    const start = { from: { seqNum: 0 } }
    expect((await large.read({ start })).records.length).toBe(2)
    expect((await large.read({ start }, { as: 'bytes' })).records.length).toBe(2)
  })

  it('hides command records on request', async () => {
    const stream = await basin.stream('a')
    await stream.append(AppendInput.create([AppendRecord.fence('t'), AppendRecord.string({ body: 'b' })]))
    const start = { from: { seqNum: 0 } }
    expect((await stream.read({ start })).records.length).toBe(3)
    expect(bodies((await stream.read({ start, ignoreCommandRecords: true })).records)).toEqual(['a', 'b'])
  })
})
