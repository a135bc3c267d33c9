import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { corrupt, mapFileErrors } from '../files/errors.ts'
import { decodeHeader, FILE_HEADER_BYTES, fileName } from '../files/file-header.ts'
import { type File, readExactly } from '../files/files.ts'
import { FRAME_HEADER_BYTES, frameEnd, readFrameHead } from '../files/frame.ts'
import {
  type ChunkFacts,
  decodeChunk,
  decodeIndex,
  decodeSegmentChunk,
  readChunkFields,
} from '../segment/chunk.ts'
import type { Log } from '../state/log.ts'
import { earliest, type Run, type Segment } from '../state/segment.ts'
import { checkPageTable } from './block-check.ts'
import { RunTally } from './run-tally.ts'
import type { Scan } from './scan.ts'

/** Far more than a chunk or an index has: limits the memory that a damaged length can take. */
const PIECE_BYTES_MAX = 64 * 1_048_576

/** A segment that is open for reading. */
export class SegmentFile {
  readonly name: string
  readonly size: number
  readonly #file: File

  constructor(name: string, file: File, size: number) {
    this.name = name
    this.#file = file
    this.size = size
  }

  /**
   * Rejects with `StorageFailure` if the file is shorter, and with `RangeError` if the length is impossible.
   */
  async read(offset: number, length: number): Promise<Buffer> {
    if (length > PIECE_BYTES_MAX) throw new RangeError(`a length of ${length} bytes is impossible`)
    if (offset + length > this.size) throw corrupt(this.name, this.size, 'truncated')
    return mapFileErrors(readExactly(this.#file, this.name, offset, length))
  }
}

/** A complete chunk. */
export interface WalkedChunk {
  readonly offset: number
  readonly bytes: number
  /** Number of its log, by the chunk itself. */
  readonly log: number
  readonly blocks: readonly StoredBlock[]
}

/** Reads the chunk at `offset` without an index. Rejects with `RangeError` if there is no complete chunk. */
export async function readChunkAt(file: SegmentFile, offset: number, salt: number): Promise<WalkedChunk> {
  const bytes = frameEnd(await file.read(offset, FRAME_HEADER_BYTES), 0)
  if (bytes > file.size - offset) throw new RangeError('a chunk is damaged')
  const chunk = await file.read(offset, bytes)
  const { log } = readChunkFields(readFrameHead(chunk, 0, salt).fields)
  return { offset, bytes, log, blocks: decodeChunk(chunk, log, salt) }
}

export interface PlacedRun {
  readonly log: Log
  readonly run: Run
}

const SALT_OFFSET = 24

/** Checks a segment that is in use against the state and its runs. */
export async function checkSegment(scan: Scan, segment: Segment, runs: readonly PlacedRun[]): Promise<void> {
  await withSegment(scan, segment.number, async (file) => {
    if (!(await checkFile(scan, file, segment))) return
    let end = FILE_HEADER_BYTES
    for (const { log, run } of runs.toSorted((a, b) => a.run.offset - b.run.offset)) {
      if (run.offset < end) {
        scan.findings.problem({ file: file.name, offset: run.offset }, 'two runs overlap', log.id)
      }
      end = run.offset + run.bytes
      await checkRun(scan, file, log, run)
    }
  })
}

/** Opens a segment, calls `work`, and closes it again. By default, a failure is reported as a problem. */
export async function withSegment(
  scan: Scan,
  number: number,
  work: (file: SegmentFile) => Promise<void>,
  onFailure?: (error: unknown) => void,
): Promise<void> {
  const name = fileName('segment', number)
  scan.begin(name)
  let size = 0
  try {
    const file = await mapFileErrors(scan.files.open(name, 'read'))
    try {
      size = await mapFileErrors(file.size())
      await work(new SegmentFile(name, file, size))
    } finally {
      await file.close()
    }
  } catch (error) {
    if (onFailure === undefined) scan.findings.failure({ file: name, offset: 0 }, error)
    else onFailure(error)
  }
  scan.bytes += size
  scan.end(size)
}

/** Resolves to whether to continue: a different file would have a problem in every chunk. */
async function checkFile({ findings }: Scan, file: SegmentFile, segment: Segment): Promise<boolean> {
  const identity = segment.isAdopted ? ({ kind: 'journal', number: segment.journal } as const) : undefined
  const { name, size } = file
  const header = await file.read(0, Math.min(FILE_HEADER_BYTES, size))
  try {
    const { salt } = decodeHeader(header, name, identity)
    if (salt !== segment.salt) throw corrupt(name, SALT_OFFSET, 'the file was replaced by another one')
  } catch (error) {
    findings.failure({ file: name, offset: 0 }, error)
    if (size < FILE_HEADER_BYTES || header.readUInt32LE(SALT_OFFSET) !== segment.salt) return false
  }
  if (segment.isAdopted && size > segment.bytes) {
    findings.note(name, `${size - segment.bytes} bytes after its end`, { offset: segment.bytes })
  } else if (size !== segment.bytes) {
    const place = { file: name, offset: Math.min(size, segment.bytes) }
    findings.problem(place, `it has ${size} bytes; expected ${segment.bytes}`)
  }
  return true
}

/** Reads every chunk of a run, including freed blocks, because reads and compactions do so too. */
async function checkRun(scan: Scan, file: SegmentFile, log: Log, run: Run): Promise<void> {
  const place = { file: file.name, offset: run.offset }
  const tally = new RunTally(scan, log, run)
  let isWhole = true
  try {
    checkBounds(run)
    const chunks = await chunksOf(scan, file, log, run)
    isWhole = await (chunks === undefined
      ? walkChunks(scan, file, log, run, tally)
      : readChunks(scan, file, log, { run, chunks, tally }))
  } catch (error) {
    isWhole = false
    scan.findings.failure(place, error, log.id)
  }
  try {
    tally.end(isWhole)
  } catch (error) {
    scan.findings.failure(place, error, log.id)
  }
}

/**
 * Compares with the length that was written: an adopted journal may continue with data that was never
 * acknowledged.
 */
function checkBounds({ offset, bytes, indexBytes, home }: Run): void {
  if (offset < FILE_HEADER_BYTES || offset + bytes > home.bytes || indexBytes >= bytes) {
    throw new RangeError(`a run of ${bytes} bytes exceeds its file of ${home.bytes}`)
  }
  if (home.isAdopted && indexBytes > 0) throw new RangeError('a run of an adopted journal has an index')
}

/** Returns undefined if the index is damaged. */
async function chunksOf(
  scan: Scan,
  file: SegmentFile,
  { id }: Log,
  run: Run,
): Promise<readonly ChunkFacts[] | undefined> {
  const { indexBytes } = run
  if (indexBytes === 0) return [run]
  const offset = run.offset + run.bytes - indexBytes
  try {
    const bytes = await file.read(offset, indexBytes)
    const chunks = decodeIndex(bytes, run.offset, run.home.salt)
    const last = chunks.at(-1)
    if (frameEnd(bytes, 0) !== indexBytes || last === undefined || last.offset + last.bytes !== offset) {
      throw new RangeError('the index of a run does not match its chunks')
    }
    return chunks
  } catch (error) {
    scan.findings.failure({ file: file.name, offset }, error, id)
    return undefined
  }
}

/** Resolves to whether all chunks are complete. */
async function readChunks(
  scan: Scan,
  file: SegmentFile,
  log: Log,
  {
    run,
    chunks,
    tally,
  }: {
    readonly run: Run
    readonly chunks: readonly ChunkFacts[]
    readonly tally: RunTally
  },
): Promise<boolean> {
  let isWhole = true
  for (const chunk of chunks) {
    scan.at(chunk.offset)
    const place = { file: file.name, offset: chunk.offset }
    try {
      const bytes = await file.read(chunk.offset, chunk.bytes)
      const blocks = decodeSegmentChunk(run.home, bytes, log.number)
      if (frameEnd(bytes, 0) !== bytes.length)
        throw new RangeError('the length of a chunk does not match its frame')
      checkPageTable(readFrameHead(bytes, 0, run.home.salt), blocks)
      for (const block of blocks) tally.add(block, place)
      // A run without an index is described by the state, which is compared when the run ends.
      if (chunk !== run) checkDescribed(chunk, blocks)
    } catch (error) {
      isWhole = false
      scan.findings.failure(place, error, log.id)
    }
  }
  return isWhole
}

function checkDescribed(chunk: ChunkFacts, blocks: readonly StoredBlock[]): void {
  const isSame =
    blocks.length > 0 &&
    blocks[0]!.firstSeqNum === chunk.firstSeqNum &&
    blocks.at(-1)!.endSeqNum === chunk.endSeqNum &&
    blocks.at(-1)!.lastTimestamp === chunk.lastTimestamp &&
    blocks.reduce((sum, { meteredBytes }) => sum + meteredBytes, 0) === chunk.meteredBytes &&
    earliest(blocks.map(({ expiresAt }) => expiresAt)) === chunk.minExpiry
  if (!isSame) throw new RangeError('a chunk does not match the index of its run')
}

/** Finds the chunks without the index: each leads to the next, up to the first damaged one. */
async function walkChunks(
  scan: Scan,
  file: SegmentFile,
  log: Log,
  run: Run,
  tally: RunTally,
): Promise<boolean> {
  const end = run.offset + run.bytes - run.indexBytes
  for (let { offset } = run; offset < end; ) {
    scan.at(offset)
    const place = { file: file.name, offset }
    try {
      const chunk = await readChunkAt(file, offset, run.home.salt)
      if (chunk.log !== log.number) throw new RangeError('a chunk belongs to another log')
      for (const block of chunk.blocks) tally.add(block, place)
      offset += chunk.bytes
    } catch (error) {
      scan.findings.failure(place, error, log.id)
      return false
    }
  }
  return true
}
