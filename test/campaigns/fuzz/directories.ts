import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { LogWriter } from '../../../adapters/conformance/log-writer.ts'
import {
  FILE_HEADER_BYTES,
  type FileKind,
  fileName,
} from '../../../adapters/storage/filesystem/files/file-header.ts'
import { GROUP_HEADER_BYTES, groupHeaderAt } from '../../../adapters/storage/filesystem/journal/group.ts'
import { Prng } from '../../../src/runtime/prng.ts'
import { SimulatedDisk } from '../../storage/filesystem/simulated-disk.ts'
import { openSimulated } from '../../storage/filesystem/workload.ts'
import { withFileHeader, withFrames, withGroup } from './checksums.ts'

/** Joins the files of a directory. The header of each file contains its name, so mutations can move them. */

export const LOG_IDS = ['a', 'b', 'c'] as const
const KINDS: Readonly<Record<string, FileKind>> = { J: 'journal', S: 'segment', C: 'checkpoint' }
const HEADER_START = /HDWR[JSC]/g

const written = new Map<number, Promise<Uint8Array>>()
let last: Promise<unknown> = Promise.resolve()

/**
 * Created once for each seed, because it takes as long as hundreds of inputs, and sequentially, so that it is
 * the same in each run.
 */
export function writtenDirectory(seed: number): Promise<Uint8Array> {
  let directory = written.get(seed)
  if (directory === undefined) {
    directory = last.then(() => withSameSalts(() => write(seed)))
    last = directory
    written.set(seed, directory)
  }
  return directory
}

/** Replaces the random salts of the storage by fixed ones, so that each run writes the same files. */
async function withSameSalts<Result>(work: () => Promise<Result>): Promise<Result> {
  const { randomBytes } = crypto
  Object.assign(crypto, { randomBytes: (count: number) => Buffer.alloc(count, 0x5a) })
  syncBuiltinESMExports()
  try {
    return await work()
  } finally {
    Object.assign(crypto, { randomBytes })
    syncBuiltinESMExports()
  }
}

/** The result of a few appends, trims and commits, with journals that are rolled early. */
async function write(seed: number): Promise<Uint8Array> {
  const random = new Prng(seed)
  const disk = new SimulatedDisk(random)
  const session = await openSimulated(disk, random.pick([500, 2000, 1_000_000]))
  const writers = await Promise.all(LOG_IDS.map((id) => LogWriter.create(session, id)))
  for (let i = 0; i < 12; i++) {
    const writer = random.pick(writers)
    const bodyBytes = random.below(120)
    if (random.chance(0.2)) await writer.append({ bodyBytes, trimPoint: writer.head.tail.seqNum })
    else await writer.append({ bodyBytes, count: 1 + random.below(3) })
    if (random.chance(0.3)) {
      await session.commit([
        { kind: 'put', collection: 'settings', key: `k${random.below(3)}`, value: { i } },
      ])
    }
    if (random.chance(0.2))
      await session.reclaim({ now: 0, trimmedBefore: Number.MAX_SAFE_INTEGER, blocksMax: 100 })
  }
  // After a crash or a clean close.
  if (random.chance(0.5)) await session.close()
  return packed(disk)
}

function packed(disk: SimulatedDisk): Uint8Array {
  return Buffer.concat(
    disk.names.filter((name) => !name.endsWith('.tmp')).map((name) => disk.contentOf(name)),
  )
}

export function unpacked(bytes: Uint8Array): Map<string, Buffer> {
  return new Map(
    contentsOf(bytes).flatMap((content) => {
      const kind = KINDS[content.toString('latin1', 4, 5)]
      const number = content.length < FILE_HEADER_BYTES ? 0n : content.readBigUInt64LE(8)
      return kind === undefined || number > BigInt(Number.MAX_SAFE_INTEGER)
        ? []
        : [[fileName(kind, Number(number)), content]]
    }),
  )
}

function contentsOf(bytes: Uint8Array): Buffer[] {
  const buffer = Buffer.from(bytes)
  const starts = [...buffer.toString('latin1').matchAll(HEADER_START)].map(({ index }) => index)
  return starts.map((start, i) => buffer.subarray(start, starts[i + 1]))
}

/** The same with correct checksums. */
export function withChecksums(bytes: Uint8Array): Uint8Array {
  return Buffer.concat(contentsOf(bytes).map(withValidChecksums))
}

function withValidChecksums(content: Buffer): Buffer {
  if (content.length < FILE_HEADER_BYTES) return content
  const file = withFileHeader(content)
  const salt = file.readUInt32LE(24)
  const kind = file.toString('latin1', 4, 5)
  if (kind === 'J') return withGroups(file, salt)
  return withFrames(file, salt, FILE_HEADER_BYTES)
}

function withGroups(file: Buffer, salt: number): Buffer {
  let copy = file
  for (let at = FILE_HEADER_BYTES; at + GROUP_HEADER_BYTES <= copy.length; ) {
    copy = withGroup(copy, salt, at)
    const header = groupHeaderAt(copy, at, salt)
    if (header === undefined) break
    at += header.bytes
  }
  return copy
}
