import type { Headwater } from '../../src/api/headwater.ts'
import type { Clock } from '../../src/index.ts'
import type { ExportCounts } from './export-entry.ts'
import { exportLines } from './export-lines.ts'
import { importLines } from './import-lines.ts'
import { linesOf } from './lines.ts'
import type { TransferFilter } from './name-filter.ts'
import { Service, type ServiceOptions, type StreamPath } from './service.ts'

/** How long to wait between two passes of a copy that follows, in milliseconds. */
const FOLLOW_MS = 1_000

interface CopyOptions {
  readonly filter: TransferFilter
  readonly clock: Clock
  /** Continues streams that the target has already. */
  readonly resume: boolean
  /** Repeats the copy until the signal, and then once more. Without it, the copy is made once. */
  readonly until?: AbortSignal | undefined
  /** Called after each chunk, with all records so far and the stream that they belong to. */
  readonly onProgress?: ((records: number, stream: string | undefined) => void) | undefined
  /** Called when a pass has found nothing new. */
  readonly onCaughtUp?: (() => void) | undefined
  readonly onWarning?: ((message: string) => void) | undefined
}

/**
 * Copies streams with their positions, timestamps and configuration. Resolves to what was copied; records of
 * all passes, basins and streams of the last one.
 *
 * @throws TransferError
 */
export async function copy(source: CopySource, target: Service, options: CopyOptions): Promise<ExportCounts> {
  const { filter, clock, until, onProgress, onCaughtUp, onWarning } = options
  let records = 0
  let resume = options.resume
  for (;;) {
    const isLast = until === undefined || until.aborted
    const compared = source.compared
    const counts = await importLines(linesOf(bytesOf(source, filter, clock.now())), target, {
      filter,
      resume,
      onProgress: (pass, stream) => onProgress?.(records + pass.records, stream),
      ...(onWarning && { onWarning }),
    })
    const added = counts.records - (source.compared - compared)
    records += added
    if (isLast) return { ...counts, records }
    if (added === 0) onCaughtUp?.()
    resume = true
    await delay(clock, until)
  }
}

async function* bytesOf(source: Service, filter: TransferFilter, now: number): AsyncGenerator<Uint8Array> {
  for await (const { bytes } of exportLines(source, filter, now)) yield bytes
}

function delay(clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const end = () => {
      cancel()
      signal.removeEventListener('abort', end)
      resolve()
    }
    const cancel = clock.schedule(FOLLOW_MS, end)
    signal.addEventListener('abort', end)
  })
}

/**
 * The source of a copy. Reads a stream from the last record that the target has, so that a copy that is
 * repeated transfers only what is new. The last record itself is compared.
 */
export class CopySource extends Service {
  /** How many records the target had already. */
  compared = 0
  readonly #target: Service

  constructor(hw: Headwater, options: ServiceOptions, target: Service) {
    super(hw, options)
    this.#target = target
  }

  override async read(...[stream, seqNum, count]: Parameters<Service['read']>): ReturnType<Service['read']> {
    if (seqNum > 0) return super.read(stream, seqNum, count)
    const last = (await this.#tailOfCopy(stream)) - 1
    const read = await super.read(stream, Math.max(last, 0), count)
    if ('records' in read && read.records[0]?.seqNum === last) this.compared++
    return read
  }

  async #tailOfCopy(stream: StreamPath): Promise<number> {
    // Reading the tail of a missing stream could create it.
    const copy = await this.#target.findStream(stream)
    return copy === undefined ? 0 : ((await this.#target.tail(copy))?.seqNum ?? 0)
  }
}
