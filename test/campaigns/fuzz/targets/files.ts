import fc from 'fast-check'
import { ByteWriter } from '../../../../adapters/storage/filesystem/files/bytes.ts'
import {
  decodeHeader,
  encodeHeader,
  FORMAT_VERSION,
  fileName,
  isTemporaryName,
  parseFileName,
  temporaryName,
} from '../../../../adapters/storage/filesystem/files/file-header.ts'
import {
  isLeftoverName,
  isOwnerName,
  parseOwner,
} from '../../../../adapters/storage/filesystem/lock/owner.ts'
import { CheckpointContent } from '../../../../adapters/storage/filesystem/state/checkpoint.ts'
import {
  type writeHead,
  type writeRun,
  writeSegment,
  writeUse,
} from '../../../../adapters/storage/filesystem/state/field-codec.ts'
import { writeDocument } from '../../../../adapters/storage/filesystem/state/stored-documents.ts'
import { writeLog } from '../../../../adapters/storage/filesystem/state/stored-logs.ts'
import { compareUtf8 } from '../../../../src/model/bytes.ts'
import { collected } from '../../../storage/filesystem/state/collected.ts'
import { withFileHeader } from '../checksums.ts'
import { checkNumbers, equal, ok } from '../harness/assertions.ts'
import { corrupt, nothing, rangeError } from '../harness/refusals.ts'
import { target } from '../harness/target.ts'
import { integer, text } from '../models.ts'
import { document, head, run, salt, segment } from '../storage-models.ts'

const kind = fc.constantFrom('journal' as const, 'segment' as const, 'checkpoint' as const)
const NUMBER = 5

export const fileHeader = target({
  name: 'file-header',
  models: fc.record({
    kind,
    number: fc.constant(NUMBER),
    version: fc.constant(FORMAT_VERSION),
    salt,
    previousEnd: integer,
    unsynced: fc.boolean(),
    syncedEnd: fc.constant(0),
  }),
  encode: encodeHeader,
  decode: (input: Uint8Array) => {
    const letter = String.fromCharCode(input[4] ?? 0)
    const of = letter === 'S' ? 'segment' : letter === 'C' ? 'checkpoint' : 'journal'
    return decodeHeader(Buffer.from(input), fileName(of, NUMBER))
  },
  means: (header) => header,
  refuses: corrupt,
  verify(read) {
    // A damaged one counts as unknown.
    const header = { ...read, version: FORMAT_VERSION, syncedEnd: read.syncedEnd ?? 0 }
    checkNumbers({ ...header, unsynced: 0, kind: 0 })
    equal(
      decodeHeader(encodeHeader(header), fileName(header.kind, NUMBER)),
      header,
      'the header, written and read again',
    )
  },
  repair: withFileHeader,
  share: 20,
})

/** The names of the files in a directory, including foreign files. */
export const fileNames = target({
  name: 'file-names',
  models: fc.tuple(kind, integer, fc.boolean()),
  encode: ([of, number, isTemporary]) =>
    isTemporary ? temporaryName(fileName(of, number)) : fileName(of, number),
  decode: (input: string) => ({
    file: parseFileName(input),
    isTemporary: isTemporaryName(input),
    isOwner: isOwnerName(input),
    isLeft: isLeftoverName(input),
  }),
  means: ([of, number, isTemporary]) => ({
    file: isTemporary ? undefined : { kind: of, number },
    isTemporary,
    isOwner: false,
    isLeft: false,
  }),
  refuses: nothing,
  verify({ file, ...kinds }, input) {
    ok(
      [file !== undefined, ...Object.values(kinds)].filter(Boolean).length <= 1,
      'a name of two kinds of file',
    )
    if (file === undefined) return
    checkNumbers(file.number)
    equal(fileName(file.kind, file.number), input, 'the name of the file again')
  },
  words: [
    'journal-',
    'segment-',
    'checkpoint-',
    '.tmp',
    '.sock',
    '0000000001',
    'owner-',
    '-',
    '9'.repeat(17),
    '9'.repeat(330),
  ],
})

const PROCESS_NUMBER_MAX = 2 ** 31 - 1

/** The files of a process that has, or had, a directory open. */
export const ownerFile = target({
  name: 'owner-file',
  models: fc.record({
    pid: fc.integer({ min: 1, max: PROCESS_NUMBER_MAX }),
    host: text,
    boot: text,
    since: text,
    device: integer,
  }),
  encode: (owner) => `${JSON.stringify(owner)}\n`,
  decode: (input: string) => parseOwner(input),
  means: (owner) => owner,
  refuses: nothing,
  verify(owner) {
    if (owner === undefined) return
    const { pid, host, since, boot, device } = owner
    ok(Number.isInteger(pid) && pid > 0 && pid <= PROCESS_NUMBER_MAX, `${pid} is no number of a process`)
    ok(
      [host, since ?? '', boot ?? ''].every((one) => typeof one === 'string'),
      'an owner without names',
    )
    ok(typeof (device ?? 0) === 'number', 'a device that is no number')
  },
  words: ['"pid":', '"host":', '"__proto__":', '"device":', 'null', '{}', '1e400', '\n', '-1', '1.5', '0'],
})

interface CheckpointModel {
  readonly segments: readonly Parameters<typeof writeSegment>[1][]
  readonly documents: readonly { collection: string; key: string; version: number; text: string }[]
  readonly logs: readonly {
    head: Parameters<typeof writeHead>[1]
    runs: readonly Parameters<typeof writeRun>[1][]
  }[]
}

const checkpoints: fc.Arbitrary<CheckpointModel> = fc.record({
  segments: fc
    .array(segment, { maxLength: 3 })
    .map((segments) => segments.map((one, i) => ({ ...one, number: i + 1 }))),
  documents: fc.uniqueArray(document, {
    maxLength: 3,
    selector: ({ collection, key }) => `${collection} ${key}`,
  }),
  logs: fc.array(fc.record({ head, runs: fc.array(run, { maxLength: 2 }) }), { maxLength: 3 }),
})

/** Each frame follows its length in two bytes, a format of this test only. */
function framesOf({ segments, documents, logs }: CheckpointModel): Uint8Array {
  const all = new ByteWriter()
  const frame = (letter: string, write: (writer: ByteWriter) => void): void => {
    const writer = new ByteWriter()
    writer.byte(letter.charCodeAt(0))
    write(writer)
    all.byte(writer.length >> 8)
    all.byte(writer.length & 0xff)
    all.raw(writer.bytes)
  }
  if (segments.length > 0)
    frame('S', (writer) => {
      for (const one of segments) {
        writeSegment(writer, one)
        writeUse(writer, { runs: 1, liveBytes: one.bytes, smallRuns: 0, smallBytes: 0 })
      }
    })
  for (const { collection, key, ...stored } of documents.toSorted((a, b) => compareUtf8(a.key, b.key))) {
    frame('D', (writer) => {
      writer.string(collection)
      writeDocument(writer, { key, document: stored })
    })
  }
  for (const [i, { head: headOfLog, runs }] of logs.entries()) {
    frame('L', (writer) => {
      const known = runs.filter((one) => one.segment <= segments.length)
      writeLog(writer, { number: i + 1, id: `log-${i}`, head: headOfLog, runs: known })
    })
  }
  frame('E', (writer) => {
    for (const count of [9, 9, segments.length, documents.length, logs.length]) writer.varint(count)
  })
  return all.bytes
}

export const checkpoint = target({
  name: 'checkpoint',
  models: checkpoints,
  encode: framesOf,
  async decode(input: Uint8Array) {
    const content = new CheckpointContent()
    const bytes = Buffer.from(input)
    for (let at = 0; at + 2 <= bytes.length; ) {
      const start = at + 2
      at = start + bytes.readUInt16BE(at)
      if (content.add(bytes.subarray(start, at))) break
    }
    return {
      entries: await collected(content.state.catalog.entries()),
      logs: await collected(content.state.logs.values()),
    }
  },
  refuses: (error) => rangeError(error) || corrupt(error),
  verify({ entries, logs }) {
    for (const { version } of entries) checkNumbers({ version })
    for (const log of logs) {
      checkNumbers([log.number, log.head])
      for (const { home: _, ...facts } of log.runs) checkNumbers(facts)
    }
  },
  words: ['S', 'D', 'L', 'E'].map((letter) => Uint8Array.of(0, 1, letter.charCodeAt(0))),
  share: 30,
})
