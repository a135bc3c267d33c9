import type { StoredBlock } from '../../../../src/storage/contract.ts'
import { type ChunkFacts, decodeIndex } from '../chunk.ts'
import { earliest } from '../expiry.ts'
import { FILE_HEADER_BYTES } from '../file-header.ts'
import { frameEnd } from '../frame.ts'
import type { Log } from '../log.ts'
import type { Run } from '../run.ts'
import { decodeSegmentChunk, segmentChunkBytes } from '../segment-chunk.ts'
import { chunkHere } from './chunk-walk.ts'
import { RunTally } from './run-tally.ts'
import type { Scan } from './scan.ts'
import type { SegmentFile } from './segment-file.ts'

/** Reads every chunk of a run, freed blocks included, for whoever reads or merges reads them too. */
export async function checkRun(scan: Scan, file: SegmentFile, log: Log, run: Run): Promise<void> {
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

/** By what was written, whatever the file has: behind the end of an adopted journal is what was never acknowledged. */
function checkBounds({ offset, bytes, indexBytes, home }: Run): void {
  if (offset < FILE_HEADER_BYTES || offset + bytes > home.bytes || indexBytes >= bytes) {
    throw new RangeError(`a run of ${bytes} bytes does not fit a file of ${home.bytes}`)
  }
  if (home.isAdopted && indexBytes > 0) throw new RangeError('a run of an adopted journal has an index')
}

/** Undefined when the index does not tell. */
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
      throw new RangeError('the index of a run is one of other chunks')
    }
    return chunks
  } catch (error) {
    scan.findings.failure({ file: file.name, offset }, error, id)
    return undefined
  }
}

/** Resolves to whether all of them are whole. */
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
      if (segmentChunkBytes(run.home, bytes, blocks) !== bytes.length)
        throw new RangeError('a chunk has another length than its blocks')
      for (const block of blocks) tally.add(block, place)
      // What the state says of a run takes the place of an index, and is looked at when the run ends.
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
  if (!isSame) throw new RangeError('a chunk holds something else than the index of its run says')
}

/** Without an index, one chunk leads to the next, up to one that is not whole. */
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
      const chunk = await chunkHere(file, offset, run.home.salt)
      if (chunk.log !== log.number) throw new RangeError('a chunk is one of another log')
      for (const block of chunk.blocks) tally.add(block, place)
      offset += chunk.bytes
    } catch (error) {
      scan.findings.failure(place, error, log.id)
      return false
    }
  }
  return true
}
