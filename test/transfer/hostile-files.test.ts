import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { gunzipped } from '../../adapters/transfer/gzip.ts'
import { importLines } from '../../adapters/transfer/import-lines.ts'
import { linesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../adapters/transfer/name-filter.ts'
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
const END = '{"stream_end":"s","records":2}'
const ALL_END = '{"export_end":{"basins":1,"streams":1,"records":2}}'
const SECOND = record({ seq_num: 1, timestamp: 9 })
const WHOLE = [HEADER, BASIN, stream(), record(), SECOND, END, ALL_END]
const EMPTY_STREAM = { tail: { seq_num: 0, timestamp: 0 }, start: 0 }

/** The whole export with other lines in place of line `number`. */
const instead = (number: number, ...lines: readonly string[]) => WHOLE.toSpliced(number - 1, 1, ...lines)

describe('an import rejects, with the line number,', () => {
  it.each<[string, readonly string[], RegExp]>([
    ['invalid JSON', instead(4, '{"seq_num":0'), /^line 4: invalid JSON/],
    ['an empty line', instead(4, ''), /^line 4: /],
    ['JSON that is no object', instead(4, '[]'), /^line 4: `line` must be an object/],
    ['an unknown line', instead(2, '{"other":1}'), /^line 2: not a line of an export/],
    [
      'half a character',
      instead(4, '{"seq_num":0,"timestamp":5,"body":"\\ud800"}'),
      /^line 4: .*lone surrogate/,
    ],
    [
      'another version',
      instead(1, HEADER.replace('1,', '2,')),
      /^line 1: the format has version 2; this program reads version 1/,
    ],
    ['an export without its header', WHOLE.slice(1), /^line 1: an export must begin with its header/],
    ['a second header', instead(2, HEADER), /^line 2: an export must begin with its header/],
    ['an invalid basin name', instead(2, '{"basin":"No","config":{}}'), /^line 2: basin name must/],
    [
      'a configuration that is not an object',
      instead(2, '{"basin":"basin-a","config":{"stream_cipher":"rot13"}}'),
      /^line 2: `stream_cipher` must be/,
    ],
    [
      'an invalid configuration',
      instead(3, stream({ config: { retention_policy: { age: 0 } } })),
      /^line 3: /,
    ],
    ['a stream without its basin', instead(2), /^line 2: a stream must follow its basin/],
    [
      'a stream of another basin',
      instead(3, stream({ basin: 'basin-b' })),
      /^line 3: a stream must follow its basin/,
    ],
    ['an invalid stream name', instead(3, stream({ stream: '..' })), /^line 3: stream name must/],
    [
      'a stream that starts after its tail',
      instead(3, stream({ start: 3 })),
      /^line 3: `start` must not exceed the tail/,
    ],
    [
      'a fencing token that is too long',
      instead(3, stream({ fencing_token: 'x'.repeat(37) })),
      /^line 3: fencing token must/,
    ],
    ['a record outside a stream', instead(3), /^line 3: unexpected line outside a stream/],
    ['a stream in a stream', instead(4, stream({ stream: 't' })), /^line 4: the previous stream has no end/],
    [
      'the end of another stream',
      instead(6, '{"stream_end":"t","records":2}'),
      /^line 6: the line ends another stream/,
    ],
    [
      'a stream with missing records',
      instead(6, '{"stream_end":"s","records":3}'),
      /^line 6: stream s of basin basin-a has 2 records, not 3/,
    ],
    [
      'an export with missing streams',
      instead(7, ALL_END.replace('"streams":1', '"streams":2')),
      /^line 7: the export has other counts/,
    ],
    ['a line after the end', [...WHOLE, BASIN], /^line 8: unexpected line after the end/],
    [
      'a stream twice',
      instead(7, stream()),
      /^line 7: streams must be unique and in the order of their names/,
    ],
    ['a basin twice', instead(7, BASIN), /^line 7: basins must be unique and in the order of their names/],
    ['a sequence number twice', instead(5, record()), /^line 5: the record is out of order/],
    [
      'a sequence number that decreases',
      instead(4, SECOND, record()),
      /^line 4|^line 5: the record is out of order/,
    ],
    [
      'a sequence number at the tail',
      instead(5, record({ seq_num: 2, timestamp: 9 })),
      /^line 5: the record is out of order/,
    ],
    [
      'a sequence number before the start',
      instead(3, stream({ start: 1 })),
      /^line 4: the record is out of order/,
    ],
    [
      'a time that decreases',
      instead(5, record({ seq_num: 1, timestamp: 4 })),
      /^line 5: the record is out of order/,
    ],
    [
      'a last record with another time than the tail',
      instead(5, record({ seq_num: 1, timestamp: 8 })),
      /^line 5: the record is out of order/,
    ],
    [
      'a number of 2^53',
      instead(4, '{"seq_num":0,"timestamp":9007199254740992}'),
      /^line 4: `timestamp` must be an integer from 0 to 9007199254740991/,
    ],
    [
      'a sequence number of 2^64',
      instead(4, '{"seq_num":18446744073709551616,"timestamp":1}'),
      /^line 4: `seq_num` must be an integer/,
    ],
    [
      'a number with a fraction',
      instead(4, '{"seq_num":0.5,"timestamp":1}'),
      /^line 4: `seq_num` must be an integer/,
    ],
    ['invalid base64', instead(4, record({ body: undefined, body_base64: 'x' })), /^line 4: invalid Base64/],
    [
      'two bodies',
      instead(4, record({ body_base64: '' })),
      /^line 4: `body` cannot be combined with `body_base64`/,
    ],
    [
      'two sets of headers',
      instead(4, record({ headers: [], headers_base64: [] })),
      /^line 4: `headers` cannot be combined/,
    ],
    ['a header that is not a pair', instead(4, record({ headers: [['a']] })), /^line 4: a header must be/],
    [
      'an empty header name outside a command',
      instead(
        4,
        record({
          headers: [
            ['', 'a'],
            ['b', 'c'],
          ],
        }),
      ),
      /^line 4: invalid header: empty name/,
    ],
    ['an unknown command', instead(4, record({ headers: [['', 'jump']] })), /^line 4: unknown command/],
    [
      'a record that is too large',
      instead(4, record({ body: 'x'.repeat(1024 * 1024) })),
      /^line 4: record must have metered size/,
    ],
    [
      'a gap that is too large',
      instead(3, stream({ tail: { seq_num: 200_000_000, timestamp: 9 } })),
      /^line 6: .*the records 2 to 199999999 are missing, which is too many/,
    ],
  ])('%s', async (_, lines, message) => {
    const { service, hw } = await openEndpoint()
    await expect(imported(service, `${lines.join('\n')}\n`)).rejects.toThrow(message)
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
    const { service } = await openEndpoint()
    let yielded = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        yielded += 65_536
        yield new Uint8Array(65_536).fill(0x78)
      }
    }
    const options = { filter: EVERYTHING, resume: false }
    await expect(importLines(linesOf(gunzipped(endless())), service, options)).rejects.toThrow(
      'line 1 is longer than 8388608 bytes',
    )
    expect(yielded).toBeLessThan(10 * 1024 * 1024)
  })

  it('a compression bomb, without unpacking it', async () => {
    const { service } = await openEndpoint()
    let unpacked = 0
    async function* counted(parts: AsyncIterable<Uint8Array>) {
      for await (const part of parts) {
        unpacked += part.length
        yield part
      }
    }
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024, 0x20))
    const options = { filter: EVERYTHING, resume: false }
    const lines = linesOf(counted(gunzipped(chunks(bomb))))
    await expect(importLines(lines, service, options)).rejects.toThrow('line 1 is longer than')
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

  it('a stream with a high start, into a directory', async () => {
    const { service, hw } = await openEndpoint({ kind: 'directory' })
    const tail = { seq_num: Number.MAX_SAFE_INTEGER - 2, timestamp: 9 }
    const start = tail.seq_num - 1
    const only = record({ seq_num: start, timestamp: 9 })
    const lines = [
      HEADER,
      BASIN,
      stream({ start, tail }),
      only,
      '{"stream_end":"s","records":1}',
      '{"export_end":{"basins":1,"streams":1,"records":1}}',
    ]
    await imported(service, `${lines.join('\n')}\n`)
    const { records: text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(text.map(({ seqNum }) => seqNum)).toEqual([start])
  })

  it('the largest record, of bytes that take most characters', { tags: ['slow'] }, async () => {
    const body = '\u0000'.repeat(1024 * 1024 - 8)
    const { service, hw } = await openEndpoint()
    const lines = [
      HEADER,
      BASIN,
      stream({ tail: { seq_num: 1, timestamp: 5 } }),
      record({ body }),
      '{"stream_end":"s","records":1}',
      '{"export_end":{"basins":1,"streams":1,"records":1}}',
    ]
    await imported(service, `${lines.join('\n')}\n`)
    const { records: text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(text[0]!.body === body).toBe(true)
  })

  it('an empty stream', async () => {
    const { service } = await openEndpoint()
    const lines = [
      HEADER,
      BASIN,
      stream(EMPTY_STREAM),
      '{"stream_end":"s","records":0}',
      '{"export_end":{"basins":1,"streams":1,"records":0}}',
    ]
    expect(await imported(service, `${lines.join('\n')}\n`)).toEqual({ basins: 1, streams: 1, records: 0 })
  })
})
