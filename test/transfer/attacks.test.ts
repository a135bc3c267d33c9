import { gzipSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { importLines } from '../../adapters/transfer/import-lines.ts'
import { linesOf } from '../../adapters/transfer/lines.ts'
import { EVERYTHING } from '../../adapters/transfer/name-filter.ts'
import { plainInput } from '../../adapters/transfer/plain-input.ts'
import { imported, place } from './support.ts'

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

/** The whole with another line, from 1 on, in place of one; or several. */
const instead = (number: number, ...lines: readonly string[]) => WHOLE.toSpliced(number - 1, 1, ...lines)

describe('an import refuses, with the number of the line,', () => {
  it.each<[string, readonly string[], RegExp]>([
    ['what is no JSON', instead(4, '{"seq_num":0'), /^line 4: invalid JSON/],
    ['an empty line', instead(4, ''), /^line 4: /],
    ['JSON that is no object', instead(4, '[]'), /^line 4: `line` must be an object/],
    ['a line that it does not know', instead(2, '{"other":1}'), /^line 2: this is no line of an export/],
    [
      'half of a character',
      instead(4, '{"seq_num":0,"timestamp":5,"body":"\\ud800"}'),
      /^line 4: .*lone surrogate/,
    ],
    [
      'another version',
      instead(1, HEADER.replace('1,', '2,')),
      /^line 1: its format has version 2; this program reads version 1/,
    ],
    ['an export without its header', WHOLE.slice(1), /^line 1: an export begins with its header/],
    ['a second header', instead(2, HEADER), /^line 2: an export begins with its header/],
    ['a basin of no such name', instead(2, '{"basin":"No","config":{}}'), /^line 2: basin name must/],
    [
      'a configuration that is none',
      instead(2, '{"basin":"basin-a","config":{"stream_cipher":"rot13"}}'),
      /^line 2: `stream_cipher` must be/,
    ],
    [
      'a configuration without meaning',
      instead(3, stream({ config: { retention_policy: { age: 0 } } })),
      /^line 3: /,
    ],
    ['a stream without its basin', instead(2), /^line 2: a stream must follow its basin/],
    [
      'a stream of another basin',
      instead(3, stream({ basin: 'basin-b' })),
      /^line 3: a stream must follow its basin/,
    ],
    ['a stream of no such name', instead(3, stream({ stream: '..' })), /^line 3: stream name must/],
    [
      'a stream that begins behind its end',
      instead(3, stream({ start: 3 })),
      /^line 3: `start` must not lie behind the tail/,
    ],
    [
      'a fencing token that is too long',
      instead(3, stream({ fencing_token: 'x'.repeat(37) })),
      /^line 3: fencing token must/,
    ],
    ['a record outside of a stream', instead(3), /^line 3: it belongs to no stream/],
    ['a stream in a stream', instead(4, stream({ stream: 't' })), /^line 4: the stream before it has no end/],
    [
      'an end of another stream',
      instead(6, '{"stream_end":"t","records":2}'),
      /^line 6: another stream ends/,
    ],
    [
      'a stream of which records are missing',
      instead(6, '{"stream_end":"s","records":3}'),
      /^line 6: stream s of basin basin-a has 2 records, not 3/,
    ],
    [
      'an export of which streams are missing',
      instead(7, ALL_END.replace('"streams":1', '"streams":2')),
      /^line 7: parts of the export are missing/,
    ],
    ['what stands behind the end', [...WHOLE, BASIN], /^line 8: it stands behind the end/],
    [
      'a stream twice',
      instead(7, stream()),
      /^line 7: streams must be in the order of their names, each once/,
    ],
    ['a basin twice', instead(7, BASIN), /^line 7: basins must be in the order of their names, each once/],
    ['a sequence number twice', instead(5, record()), /^line 5: the record does not fit/],
    [
      'a sequence number that goes back',
      instead(4, SECOND, record()),
      /^line 4|^line 5: the record does not fit/,
    ],
    [
      'a sequence number at the tail',
      instead(5, record({ seq_num: 2, timestamp: 9 })),
      /^line 5: the record does not fit/,
    ],
    [
      'a sequence number before the start',
      instead(3, stream({ start: 1 })),
      /^line 4: the record does not fit/,
    ],
    [
      'a time that goes back',
      instead(5, record({ seq_num: 1, timestamp: 4 })),
      /^line 5: the record does not fit/,
    ],
    [
      'a last record at another time than its stream ends',
      instead(5, record({ seq_num: 1, timestamp: 8 })),
      /^line 5: the record does not fit/,
    ],
    [
      'a number of 2^53',
      instead(4, '{"seq_num":0,"timestamp":9007199254740992}'),
      /^line 4: timestamp must be an integer from 0 to 9007199254740991/,
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
    ['a member twice', instead(4, '{"seq_num":0,"seq_num":1,"timestamp":1}'), /^line 4: duplicate member/],
    [
      'base64 that is none',
      instead(4, record({ body: undefined, body_base64: 'x' })),
      /^line 4: invalid Base64/,
    ],
    ['two bodies', instead(4, record({ body_base64: '' })), /^line 4: `body` does not go with `body_base64`/],
    [
      'two sets of headers',
      instead(4, record({ headers: [], headers_base64: [] })),
      /^line 4: `headers` does not go/,
    ],
    ['a header that is no pair', instead(4, record({ headers: [['a']] })), /^line 4: a header must be/],
    [
      'an empty name of a header that is no command',
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
    ['a command that is none', instead(4, record({ headers: [['', 'jump']] })), /^line 4: unknown command/],
    [
      'a record that is too large',
      instead(4, record({ body: 'x'.repeat(1024 * 1024) })),
      /^line 4: record must have metered size/,
    ],
    [
      'a gap that is too large to be filled',
      instead(3, stream({ tail: { seq_num: 200_000_000, timestamp: 9 } })),
      /^line 6: .*the records 2 to 199999999 are missing: too many/,
    ],
  ])('%s', async (_, lines, message) => {
    const { service, hw } = await place()
    await expect(imported(service, `${lines.join('\n')}\n`)).rejects.toThrow(message)
    const { items } = await hw.listBasins()
    // Nothing of a stream is stored that did not come before the line.
    expect(items.length).toBeLessThanOrEqual(1)
  })

  it('bytes that are not UTF-8, as bytes', async () => {
    const { service } = await place()
    const input = Buffer.from(`${instead(4, record({ body: 'ÿ' })).join('\n')}\n`, 'latin1')
    await expect(imported(service, input)).rejects.toThrow(/^line 4: invalid JSON: not UTF-8/)
  })

  it('an input that is empty, or nothing but a beginning', async () => {
    const { service } = await place()
    await expect(imported(service, '')).rejects.toThrow('the input is no export: it is empty')
    await expect(imported(service, HEADER)).rejects.toThrow('the input is no export: it is empty')
    await expect(imported(service, `${HEADER}\n`)).rejects.toThrow('it was cut off')
  })

  it('a line without end, before it is all in memory', async () => {
    const { service } = await place()
    let given = 0
    async function* endless(): AsyncGenerator<Uint8Array> {
      for (;;) {
        given += 65_536
        yield new Uint8Array(65_536).fill(0x78)
      }
    }
    const options = { filter: EVERYTHING, resume: false }
    await expect(importLines(linesOf(plainInput(endless())), service, options)).rejects.toThrow(
      'line 1 is longer than 8388608 bytes',
    )
    expect(given).toBeLessThan(10 * 1024 * 1024)
  })

  it('a bomb, without unpacking it', async () => {
    const { service } = await place()
    const bomb = gzipSync(Buffer.alloc(256 * 1024 * 1024, 0x20))
    expect(bomb.length).toBeLessThan(300_000)
    const before = process.memoryUsage().arrayBuffers
    await expect(imported(service, bomb)).rejects.toThrow('line 1 is longer than')
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024)
  })

  it('damage in what is compressed', async () => {
    const { service } = await place()
    const compressed = gzipSync(`${WHOLE.join('\n')}\n`)
    compressed[30]! ^= 0xff
    await expect(imported(service, compressed)).rejects.toThrow(/the compressed input is damaged|line \d: /)
    const checksum = gzipSync(`${WHOLE.join('\n')}\n`)
    checksum[checksum.length - 6]! ^= 0xff
    await expect(imported((await place()).service, checksum)).rejects.toThrow(
      'the compressed input is damaged',
    )
  })
})

describe('an import takes', () => {
  it('members in any number, gzip in any number of members, and a member that is not known', async () => {
    const { service, hw } = await place()
    const lines = instead(4, record({ later: true }))
    const input = Buffer.concat(lines.map((line) => gzipSync(`${line}\n`)))
    expect(await imported(service, input)).toEqual({ basins: 1, streams: 1, records: 2 })
    const { text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(text).toMatchObject([
      { seqNum: 0, timestamp: 5, body: 'x' },
      { seqNum: 1, timestamp: 9, body: 'x' },
    ])
  })

  it('a stream that begins far on, in a directory', async () => {
    const { service, hw } = await place({ kind: 'directory' })
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
    const { text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
    expect(text.map(({ seqNum }) => seqNum)).toEqual([start])
  })

  it('the largest record there is, whatever it is made of', async () => {
    for (const body of ['\u0000'.repeat(1024 * 1024 - 8), '"'.repeat(1024 * 1024 - 8)]) {
      const { service, hw } = await place()
      const tail = { seq_num: 1, timestamp: 5 }
      const lines = [
        HEADER,
        BASIN,
        stream({ tail }),
        record({ body }),
        '{"stream_end":"s","records":1}',
        '{"export_end":{"basins":1,"streams":1,"records":1}}',
      ]
      await imported(service, `${lines.join('\n')}\n`)
      const { text } = await hw.basin('basin-a').stream('s').readBatch({ seqNum: 0 })
      expect(text[0]!.body === body).toBe(true)
    }
  })

  it('an empty stream', async () => {
    const { service } = await place()
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
