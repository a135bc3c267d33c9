import { CheckpointContent } from '../checkpoint-reader.ts'
import { CHECKPOINT_FRAME_BYTES_MAX } from '../checkpoint-writer.ts'
import { fileName } from '../file-header.ts'
import { FRAME_HEADER_BYTES, frameEnd } from '../frame.ts'
import { Log } from '../log.ts'
import { SequentialReader } from '../sequential-reader.ts'
import { checkDocument } from './document-check.ts'
import type { Place } from './findings.ts'
import { checkHead } from './head-check.ts'
import type { Scan } from './scan.ts'

const LETTER_OF_END = 'E'.charCodeAt(0)

/** Reads the checkpoint and takes its state, or what there is of it. */
export async function checkCheckpoint(scan: Scan, number: number): Promise<void> {
  const file = fileName('checkpoint', number)
  let reader: SequentialReader
  try {
    reader = await SequentialReader.open(scan.files, file)
  } catch (error) {
    scan.isPartial = true
    scan.findings.failure({ file, offset: 0 }, error)
    return
  }
  scan.begin(file)
  try {
    await readFrames(scan, reader)
  } catch (error) {
    scan.isPartial = true
    scan.findings.failure({ file, offset: reader.offset }, error)
  } finally {
    await reader.close()
  }
  scan.bytes += reader.size
  scan.end(reader.size)
}

async function readFrames(scan: Scan, reader: SequentialReader): Promise<void> {
  const { findings } = scan
  let place: Place = { file: reader.name, offset: 0 }
  const content = new CheckpointContent((item) => {
    if (item instanceof Log) scan.logPlaces.set(item.number, place)
    else scan.setPlace(item, place)
    try {
      if (item instanceof Log) checkHead(item.head)
      else checkDocument(item)
    } catch (error) {
      findings.failure(place, error, item instanceof Log ? item.id : undefined)
    }
  })
  scan.state = content.state
  const { salt } = await reader.header()
  for (let isLast = false; !isLast; ) {
    place = { file: reader.name, offset: reader.offset }
    scan.at(reader.offset)
    try {
      const payload = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX)
      if (payload === undefined) throw new RangeError('the end is missing')
      // Its counts are not those of what is left of a damaged one.
      isLast = payload[0] === LETTER_OF_END
      content.add(payload)
    } catch (error) {
      const isUnread = reader.offset === place.offset
      // What it rests on may have been in a frame that is lost.
      if (isUnread || !scan.isPartial) findings.failure(place, error)
      scan.isPartial = true
      if (isUnread && !(await skipFrame(reader, salt))) return
    }
  }
  if (reader.offset < reader.size) {
    findings.problem({ file: reader.name, offset: reader.offset }, 'there is something behind the end')
  }
  if (!scan.isPartial) checkCounters(scan, place)
}

/** Moves on behind a frame that is not whole, as far as its length can be believed: a whole frame follows. */
async function skipFrame(reader: SequentialReader, salt: number): Promise<boolean> {
  const { offset } = reader
  const bytes = frameEnd(await reader.peek(FRAME_HEADER_BYTES), 0)
  if (bytes >= reader.size - offset) return false
  reader.skip(bytes)
  const start = reader.offset
  const next = await reader.frame(salt, CHECKPOINT_FRAME_BYTES_MAX).catch(() => undefined)
  if (next === undefined) return false
  reader.skip(start - reader.offset)
  return true
}

/** What is given once must not have been given to more than one, nor be given again. */
function checkCounters({ state, findings }: Scan, place: Place): void {
  const versions = new Set(state.catalog.entries().map(({ version }) => version))
  const numbers = [...state.logsByNumber.keys()]
  if ([...versions].some((version) => version >= state.nextVersion)) {
    findings.problem(place, 'a document has a version that was not given yet')
  }
  if (versions.size < state.catalog.size) findings.problem(place, 'two documents have one version')
  if (numbers.some((number) => number >= state.nextLog)) {
    findings.problem(place, 'a log has a number that was not given yet')
  }
  if (state.logsById.size < numbers.length) findings.problem(place, 'two logs have one id')
}
