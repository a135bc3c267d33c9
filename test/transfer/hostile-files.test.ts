import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { entriesOf, gunzipped, linesOf } from '../../adapters/transfer/lines.ts'
import { chunks, imported, openEndpoint } from './support.ts'

const HEADER = '{"headwater_export":1,"exported_at":"2030-01-01T00:00:00Z"}'
const BASIN = '{"basin":"basin-a","config":{}}'
const stream = (over: object = {}) =>
  JSON.stringify({
    stream: 's',
    basin: 'basin-a',
    config: {},
    cipher: null,
    start: 0,
    tail: { seq_num: 2, timestamp: 9 },
    fencing_token: null,
    ...over,
  })
const record = (over: object = {}) => JSON.stringify({ seq_num: 0, timestamp: 5, body: 'x', ...over })
const withHeaders = (headers: readonly (readonly string[])[], more = {}) => record({ headers, ...more })
const literally = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
const END = '{"stream_end":"s","records":2}'
const ALL_END = '{"export_end":{"basins":1,"streams":1,"records":2}}'
const SECOND = record({ seq_num: 1, timestamp: 9 })
const WHOLE = [HEADER, BASIN, stream(), record(), SECOND, END, ALL_END]

/** The whole export with other lines in place of line `number`. */
const instead = (number: number, ...lines: readonly string[]) => WHOLE.toSpliced(number - 1, 1, ...lines)

const LONGER = stream({ tail: { seq_num: 3, timestamp: 9 } })
const EMPTY_NAME = [
  ['', 'a'],
  ['b', 'c'],
]

/**
 * What is wrong, the line and what is in its place, and the problem; behind it, the line that is reported.
 */
type Row = readonly [title: string, line: number, by: readonly string[], problem: string, reported?: number]

const ROWS: readonly Row[] = [
  ['invalid JSON', 4, ['{"seq_num":0'], 'invalid JSON'],
  ['an empty line', 4, [''], 'invalid JSON'],
  ['JSON that is no object', 4, ['[]'], '`line` must be an object'],
  ['an unknown line', 2, ['{"other":1}'], 'not a line of an export'],
  ['half a character', 4, ['{"seq_num":0,"timestamp":5,"body":"\\ud800"}'], 'a string has a lone surrogate'],
  ['another version', 1, [HEADER.replace('1,', '2,')], 'has version 2; this program reads version 1'],
  ['an export without its header', 1, [], 'an export must begin with its header'],
  ['a second header', 2, [HEADER], 'an export must begin with its header'],
  ['an invalid basin name', 2, ['{"basin":"No","config":{}}'], 'basin name must'],
  ['an unknown cipher', 2, [BASIN.replace('{}', '{"stream_cipher":"rot13"}')], '`stream_cipher` must be'],
  ['an invalid configuration', 3, [stream({ config: { retention_policy: { age: 0 } } })], ''],
  ['a stream without its basin', 2, [], 'a stream must follow its basin'],
  ['a stream of another basin', 3, [stream({ basin: 'basin-b' })], 'a stream must follow its basin'],
  ['an invalid stream name', 3, [stream({ stream: '..' })], 'stream name must'],
  ['a stream that starts after its tail', 3, [stream({ start: 3 })], '`start` must not exceed the tail'],
  ['a long fencing token', 3, [stream({ fencing_token: 'x'.repeat(37) })], 'fencing token must'],
  ['a record outside a stream', 3, [], 'unexpected line outside a stream'],
  ['a stream in a stream', 4, [stream({ stream: 't' })], 'the previous stream has no end'],
  ['the end of another stream', 6, ['{"stream_end":"t","records":2}'], 'the line ends another stream'],
  ['missing records', 6, ['{"stream_end":"s","records":3}'], 's of basin basin-a has 2 records, not 3'],
  ['missing streams', 7, [ALL_END.replace('"streams":1', '"streams":2')], 'the export has other counts'],
  ['a line after the end', 7, [ALL_END, BASIN], 'unexpected line after the end', 8],
  ['a stream twice', 7, [stream()], 'streams must be unique and in the order of their names'],
  ['a basin twice', 7, [BASIN], 'basins must be unique and in the order of their names'],
  ['a sequence number twice', 5, [record()], 'is out of order'],
  ['a sequence number at the tail', 5, [record({ seq_num: 2, timestamp: 9 })], 'is out of order'],
  ['a sequence number before the start', 3, [stream({ start: 1 })], 'is out of order', 4],
  [
    'a time that decreases',
    3,
    [LONGER, record(), record({ seq_num: 1, timestamp: 4 })],
    'is out of order',
    5,
  ],
  ['another time than the tail', 5, [record({ seq_num: 1, timestamp: 8 })], 'is out of order'],
  ['a number of 2^53', 4, ['{"seq_num":0,"timestamp":9007199254740992}'], '`timestamp` must be an integer'],
  ['a number of 2^64', 4, ['{"seq_num":18446744073709551616,"timestamp":1}'], '`seq_num` must be an integer'],
  ['a number with a fraction', 4, ['{"seq_num":0.5,"timestamp":1}'], '`seq_num` must be an integer'],
  ['invalid base64', 4, [record({ body: undefined, body_base64: 'x' })], 'invalid Base64'],
  ['two bodies', 4, [record({ body_base64: '' })], '`body` cannot be combined with `body_base64`'],
  ['two sets of headers', 4, [withHeaders([], { headers_base64: [] })], '`headers` cannot be combined'],
  ['a header that is not a pair', 4, [withHeaders([['a']])], 'a header must be'],
  ['an empty header name', 4, [withHeaders(EMPTY_NAME)], 'invalid header: empty name'],
  ['an unknown command', 4, [withHeaders([['', 'jump']])], 'unknown command'],
  ['a record beyond 1 MiB', 4, [record({ body: 'x'.repeat(1024 * 1024) })], 'record must have metered size'],
]

describe('an import rejects, with the line number,', () => {
  const titled = ROWS.map((row) => [row[0], row] as const)
  it.each(titled)('%s', async (_, [, line, by, problem, reported = line]) => {
    const { service, hw } = await openEndpoint()
    const importing = imported(service, `${instead(line, ...by).join('\n')}\n`)
    await expect(importing).rejects.toThrow(new RegExp(`^line ${reported}: .*${literally(problem)}`))
    const { items } = await hw.listBasins()
    // No record after the invalid line is stored.
    expect(items.length).toBeLessThanOrEqual(1)
  })

  it('invalid UTF-8', async () => {
    const { service } = await openEndpoint()
    const input = Buffer.from(`${instead(4, record({ body: 'ÿ' })).join('\n')}\n`, 'latin1')
    await expect(imported(service, input)).rejects.toThrow(/^line 4: invalid JSON: not UTF-8/)
  })

  it('an empty or truncated input', async () => {
    const { service } = await openEndpoint()
    await expect(imported(service, '')).rejects.toThrow('the input is empty')
    await expect(imported(service, HEADER)).rejects.toThrow('the input is empty')
    await expect(imported(service, `${HEADER}\n`)).rejects.toThrow('the input is truncated')
  })

  it('an endless line, before it fills memory', async () => {
    let yielded = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        yielded += 65_536
        yield new Uint8Array(65_536).fill(0x78)
      }
    }
    await expect(entriesOf(endless()).next()).rejects.toThrow('line 1 is longer than 8388608 bytes')
    expect(yielded).toBeLessThan(10 * 1024 * 1024)
  })

  it('a compression bomb, without unpacking it', async () => {
    let unpacked = 0
    async function* counted(parts: AsyncIterable<Uint8Array>) {
      for await (const part of parts) {
        unpacked += part.length
        yield part
      }
    }
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024, 0x20))
    const lines = linesOf(counted(gunzipped(chunks(bomb))))
    await expect(lines.next()).rejects.toThrow('line 1 is longer than')
    expect(unpacked).toBeLessThan(10 * 1024 * 1024)
  })

  it('damaged compressed data', async () => {
    const { service } = await openEndpoint()
    const compressed = gzipSync(`${WHOLE.join('\n')}\n`)
    compressed[30]! ^= 0xff
    await expect(imported(service, compressed)).rejects.toThrow(/the compressed input is damaged|line \d: /)
    const checksum = gzipSync(`${WHOLE.join('\n')}\n`)
    checksum[checksum.length - 6]! ^= 0xff
    await expect(imported((await openEndpoint()).service, checksum)).rejects.toThrow(
      'the compressed input is damaged',
    )
  })
})

describe('an import accepts', () => {
  it('any order of members, several gzip members, and unknown members', async () => {
    const { service, hw } = await openEndpoint()
    const lines = instead(4, record({ later: true }))
    const input = Buffer.concat(lines.map((line) => gzipSync(`${line}\n`)))
    expect(await imported(service, input)).toEqual({ basins: 1, streams: 1, records: 2 })
    const { records: text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(text).toMatchObject([
      { seqNum: 0, timestamp: 5, body: 'x' },
      { seqNum: 1, timestamp: 9, body: 'x' },
    ])
  })

  /** An export of one stream with these records. */
  const exportOf = (over: object, ...records: readonly string[]) => {
    const counts = { basins: 1, streams: 1, records: records.length }
    const ends = [
      JSON.stringify({ stream_end: 's', records: records.length }),
      JSON.stringify({ export_end: counts }),
    ]
    return `${[HEADER, BASIN, stream(over), ...records, ...ends].join('\n')}\n`
  }

  it('a stream with a high start, into a directory', async () => {
    const { service, hw } = await openEndpoint({ kind: 'directory' })
    const tail = { seq_num: Number.MAX_SAFE_INTEGER - 2, timestamp: 9 }
    const start = tail.seq_num - 1
    await imported(service, exportOf({ start, tail }, record({ seq_num: start, timestamp: 9 })))
    const { records } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(records.map(({ seqNum }) => seqNum)).toEqual([start])
  })

  it('the largest record, of bytes that take most characters', { tags: ['slow'] }, async () => {
    const body = '\u0000'.repeat(1024 * 1024 - 8)
    const { service, hw } = await openEndpoint()
    await imported(service, exportOf({ tail: { seq_num: 1, timestamp: 5 } }, record({ body })))
    const { records } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(records[0]!.body === body).toBe(true)
  })

  it('an empty stream', async () => {
    const { service } = await openEndpoint()
    const input = exportOf({ tail: { seq_num: 0, timestamp: 0 } })
    expect(await imported(service, input)).toEqual({ basins: 1, streams: 1, records: 0 })
  })
})
