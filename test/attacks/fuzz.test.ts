import { gzipSync } from 'node:zlib'
import * as fflate from 'fflate'
import { expect, test } from 'vitest'
import { HeadwaterError } from '../../src/model/errors.ts'
import { CompressedDataError } from '../../src/wire/codec.ts'
import { portableGzip } from '../../src/wire/codec-gzip.ts'
import { loadZstdBinding, portableZstd } from '../../src/wire/codec-zstd.ts'
import { compress, decompress } from '../../src/wire/compression.ts'
import { decodeAppendJson } from '../../src/wire/json-append.ts'
import { readJson } from '../../src/wire/json-reader.ts'
import { decodeAppendInput } from '../../src/wire/proto-append.ts'

let state = 4711
const random = () => {
  state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
  return state / 0x1_0000_0000
}
const int = (n: number) => Math.floor(random() * n)
function mutate(data: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(data)
  for (let i = 0; i < 1 + int(4); i++)
    copy[int(random() < 0.6 ? Math.min(24, copy.length) : copy.length)] = int(256)
  return random() < 0.2 ? copy.subarray(0, int(copy.length)) : copy
}
const text = () => Buffer.from(Array.from({ length: 1 + int(3000) }, () => 'abcdefgh '[int(9)]).join(''))

test('damaged compressed data is bad_frame, whatever it is', async () => {
  for (let i = 0; i < 4000; i++) {
    const algorithm = i % 2 === 0 ? 'zstd' : 'gzip'
    const data = mutate(algorithm === 'gzip' ? gzipSync(text()) : await compress('zstd', text()))
    const max = 1 + int(4000)
    await decompress(algorithm, data, { bytesMax: max, code: 'bad_frame' }).then(
      (out) => expect(out.length).toBeLessThanOrEqual(max),
      (error) => {
        if (!HeadwaterError.is(error) || error.code !== 'bad_frame')
          throw new Error(`${algorithm} ${Buffer.from(data).toString('hex')} ${error}`, { cause: error })
      },
    )
  }
})

test('the portable codecs, too', async () => {
  const zstd = portableZstd(loadZstdBinding)
  const gzip = portableGzip(fflate)
  for (let i = 0; i < 4000; i++) {
    const codec = i % 2 === 0 ? zstd : gzip
    const data = mutate(await codec.compress(text()))
    const max = 1 + int(4000)
    await codec.decompress(data, max).then(
      (out) => expect(out.length).toBeLessThanOrEqual(max),
      (error) => {
        if (!(error instanceof CompressedDataError))
          throw new Error(`${i % 2} ${Buffer.from(data).toString('hex')} ${error}`, { cause: error })
      },
    )
  }
})

test('JSON is read as JSON.parse reads it', () => {
  const pieces = [
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\u0041"',
    '"\\"',
    '"',
    '\\',
    '1',
    '-1',
    '0',
    '01',
    '1.5',
    '1e5',
    '1E+2',
    '-',
    '.',
    'true',
    'false',
    'null',
    'nul',
    ' ',
    '\n',
    '\t',
    '\x00',
    '\x0b',
    '\u2028',
    '"\u2028"',
    '"\t"',
    '"\\t"',
    '"\\x"',
    '"\\ud83d\\ude00"',
    '/**/',
    "'a'",
    '"é"',
    '\u00a0',
    '\ufeff',
    'NaN',
    'Infinity',
    '"\\\\"',
  ]
  for (let i = 0; i < 60_000; i++) {
    const source = Array.from({ length: 1 + int(8) }, () => pieces[int(pieces.length)]).join('')
    let expected = true
    try {
      JSON.parse(source)
    } catch {
      expected = false
    }
    let actual = true
    try {
      readJson(Buffer.from(source))
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
      actual = false
    }
    expect([source, actual]).toEqual([source, expected])
  }
})

test('mutated protobuf and JSON inputs are errors of their kind', () => {
  const proto = Buffer.from(
    '0a0f08e80712060a016112016232036f6e650a0a1a08ffffffffffffffff10051a03746f6b',
    'hex',
  )
  const json = Buffer.from(
    '{"records":[{"body":"aGVsbG8=","headers":[["YQ==","Yg=="]],"timestamp":5},{}],"match_seq_num":1,"fencing_token":"x"}',
  )
  for (let i = 0; i < 40_000; i++) {
    for (const [decode, code] of [
      [() => decodeAppendInput(mutate(proto), 'bad_proto'), 'bad_proto'],
      [() => decodeAppendJson(mutate(json), 'base64'), 'bad_json'],
    ] as const) {
      try {
        decode()
      } catch (error) {
        if (!HeadwaterError.is(error) || ![code, 'invalid'].includes(error.code)) throw error
      }
    }
  }
})

// Megabytes each: anything worse than linear time runs into the test's limit.
test('evil JSON is read or refused in its time', () => {
  const evil = [
    `["${'\\"'.repeat(1_000_000)}"]`,
    `[${'"",'.repeat(690_000)}""]`,
    `["${'\\\\'.repeat(1_000_000)}"]`,
    `{"records":[${'{},'.repeat(690_000)}{}]}`,
    `{${'"a":1,'.repeat(345_000)}"b":1}`,
    `[${'"\\u0041",'.repeat(230_000)}1]`,
    `["${'a'.repeat(2_000_000)}`,
    `[${'"a\\n",'.repeat(290_000)}1]`,
    `[${'1'.repeat(2_000_000)}x]`,
    `{"records":[{"headers":[${'["",""],'.repeat(230_000)}["",""]]}]}`,
    `{"records":[{${'"a":1,'.repeat(340_000)}"b":1}]}`,
  ]
  for (const source of evil) {
    try {
      decodeAppendJson(Buffer.from(source), 'base64')
    } catch (error) {
      if (!HeadwaterError.is(error)) throw error
    }
  }
})
