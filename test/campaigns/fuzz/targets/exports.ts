import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import { decodeEntry, type ExportEntry, encodeEntry } from '../../../../adapters/transfer/export-entry.ts'
import { gunzipped, gzipMember, memberContent, memberLength } from '../../../../adapters/transfer/gzip.ts'
import { type Line, linesOf } from '../../../../adapters/transfer/lines.ts'
import { ResumeScan } from '../../../../adapters/transfer/resume-point.ts'
import { utf8 } from '../../../../src/model/bytes.ts'
import { Prng } from '../../../../src/runtime/prng.ts'
import { crc32 } from '../../../../src/wire/codecs.ts'
import { EXPORT_WORDS, entry, exportText, wholeExport } from '../exports.ts'
import { equal, ok } from '../harness/assertions.ts'
import { headwaterError, nothing, transferError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { bytes } from '../models.ts'

export const exportEntry = target({
  name: 'export-entry',
  models: entry,
  encode: encodeEntry,
  decode: (input: string) => decodeEntry(utf8(input)),
  means: written,
  refuses: headwaterError('bad_json', 'invalid'),
  verify: (of) => equal(decodeEntry(utf8(encodeEntry(of))), written(of), 'the line, written and read again'),
  words: EXPORT_WORDS,
  share: 40,
})

/** An entry as its line has it: the storage class of a basin's streams is always there. */
function written(entry: ExportEntry): ExportEntry {
  if (entry.kind !== 'basin') return entry
  const { defaultStreamConfig, ...config } = entry.config
  const withClass = { storageClass: 'express' as const, ...defaultStreamConfig }
  return { ...entry, config: { ...config, defaultStreamConfig: withClass } }
}

async function* chunks(input: Uint8Array): AsyncGenerator<Uint8Array> {
  const random = new Prng(crc32(input))
  for (let at = 0; at < input.length; ) {
    const length = random.chance(0.5) ? 1 + random.below(3) : 1 + random.below(input.length)
    yield input.subarray(at, at + length)
    at += length
  }
}

async function gathered(input: AsyncIterable<readonly Line[]>): Promise<Line[]> {
  const all: Line[] = []
  for await (const lines of input) all.push(...lines)
  return all
}

/** Finds the same lines however the input is split. */
export const exportLines = target({
  name: 'export-lines',
  models: wholeExport,
  encode: (entries) => utf8(exportText(entries)),
  decode: (input: Uint8Array) => gathered(linesOf(chunks(input))),
  means: (entries) => {
    let end = 0
    return entries.map((of, i) => {
      const line = utf8(encodeEntry(of))
      end += line.length + 1
      return { number: i + 1, bytes: line, end }
    })
  },
  refuses: transferError,
  verify(lines, input) {
    const whole = Buffer.from(input)
    equal(lines.at(-1)?.end ?? 0, whole.lastIndexOf(0x0a) + 1, 'where the last whole line ends')
    for (const { bytes: line, end } of lines) {
      equal(line, whole.subarray(end - 1 - line.length, end - 1), 'the bytes of a line')
    }
  },
  words: ['\n', '\n\n', '\r\n'].map(utf8),
  share: 5,
})

function isEnd(line: string): boolean {
  try {
    return decodeEntry(utf8(line)).kind === 'end'
  } catch {
    return false
  }
}

/** Scans an interrupted export for the position to resume at. */
export const resumedExport = target({
  name: 'resumed-export',
  models: wholeExport,
  encode: exportText,
  decode(input: string) {
    const scan = new ResumeScan()
    const lines = input.split('\n').slice(0, -1)
    for (const [i, line] of lines.entries()) scan.add({ number: i + 1, bytes: utf8(line), end: 0 })
    return scan.point()
  },
  refuses: transferError,
  verify(point, input) {
    if (point === undefined) return
    equal(point.isComplete, isEnd(input.split('\n').at(-2)!), 'whether it is complete')
    ok(!point.isComplete || point.openStream === undefined, 'a complete export has an open stream')
    ok(point.lastStream === undefined || point.basin !== undefined, 'a stream of no basin')
  },
  words: EXPORT_WORDS,
  share: 15,
})

/** A compressed input of an import, of any program and truncated anywhere. */
export const compressedInput = target({
  name: 'compressed-input',
  models: fc.tuple(fc.array(bytes, { minLength: 1, maxLength: 3 }), fc.boolean()),
  encode: async ([parts, isOurs]) =>
    Buffer.concat(isOurs ? await Promise.all(parts.map(gzipMember)) : parts.map((part) => gzipSync(part))),
  async decode(input: Uint8Array) {
    const parts: Uint8Array[] = []
    for await (const part of gunzipped(chunks(input))) parts.push(Uint8Array.from(part))
    return Buffer.concat(parts)
  },
  means: ([parts]) => Buffer.concat(parts),
  refuses: transferError,
  memory: { perInputByte: 1100, beside: 1_500_000 },
  share: 1,
})

/** A member of a compressed export, as found when resuming. */
export const gzipMembers = target({
  name: 'gzip-member',
  models: bytes,
  encode: gzipMember,
  async decode(input: Uint8Array) {
    const length = memberLength(input)
    if (length === undefined || length > input.length) return undefined
    return memberContent(input.subarray(0, length))
  },
  means: (of) => of,
  refuses: nothing,
  async verify(content) {
    if (content === undefined) return
    const repeated = await gzipMember(content)
    equal(memberLength(repeated), repeated.length, 'the length of a member')
    equal(await memberContent(repeated), content, 'the content again')
  },
  memory: { perInputByte: 1100, beside: 100_000 },
  share: 3,
})
