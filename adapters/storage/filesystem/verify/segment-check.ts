import { corrupt, reading } from '../failures.ts'
import { decodeHeader, FILE_HEADER_BYTES, fileName } from '../file-header.ts'
import type { Log } from '../log.ts'
import type { Run } from '../run.ts'
import type { Segment } from '../segment.ts'
import { checkRun } from './run-check.ts'
import type { Scan } from './scan.ts'
import { SegmentFile } from './segment-file.ts'

export interface PlacedRun {
  readonly log: Log
  readonly run: Run
}

const SALT_OFFSET = 24

/** Holds a segment to what the state says of it and of its runs, which are those that are wanted. */
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

/** Opens a segment and closes it again. What cannot be opened is a problem. */
export async function withSegment(
  scan: Scan,
  number: number,
  work: (file: SegmentFile) => Promise<void>,
): Promise<void> {
  const name = fileName('segment', number)
  scan.begin(name)
  let size = 0
  try {
    const file = await reading(scan.files.open(name, 'read'))
    try {
      size = await reading(file.size())
      await work(new SegmentFile(name, file, size))
    } finally {
      await file.close()
    }
  } catch (error) {
    scan.findings.failure({ file: name, offset: 0 }, error)
  }
  scan.bytes += size
  scan.end(size)
}

/** Resolves to whether it is worth looking further: another file would have a problem in every chunk. */
async function checkFile({ findings }: Scan, file: SegmentFile, segment: Segment): Promise<boolean> {
  const identity = segment.isAdopted ? ({ kind: 'journal', number: segment.journal } as const) : undefined
  const { name, size } = file
  const header = await file.read(0, Math.min(FILE_HEADER_BYTES, size))
  try {
    const { salt } = decodeHeader(header, name, identity)
    if (salt !== segment.salt)
      throw corrupt(name, SALT_OFFSET, 'it is another file than the one that was written')
  } catch (error) {
    findings.failure({ file: name, offset: 0 }, error)
    if (size < FILE_HEADER_BYTES || header.readUInt32LE(SALT_OFFSET) !== segment.salt) return false
  }
  if (segment.isAdopted && size > segment.bytes) {
    findings.note(name, `${size - segment.bytes} bytes behind its end`, { offset: segment.bytes })
  } else if (size !== segment.bytes) {
    const place = { file: name, offset: Math.min(size, segment.bytes) }
    findings.problem(place, `it has ${size} bytes, and was written with ${segment.bytes}`)
  }
  return true
}
