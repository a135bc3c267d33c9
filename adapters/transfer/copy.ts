import { exportEntries } from './export-entries.ts'
import type { ExportCounts } from './export-entry.ts'
import { importEntries } from './import-entries.ts'
import type { ImportOptions } from './import-stream.ts'
import type { Service, StreamPath } from './service.ts'

interface CopyOptions extends Pick<ImportOptions, 'filter' | 'resume' | 'renumber' | 'onWarning'> {
  /** Returns the current time in milliseconds. */
  readonly now: () => number
  /**
   * Waits before the next pass. Resolves to whether it is the last one. Without it, there is one pass.
   */
  readonly nextPass?: (() => Promise<{ readonly isLast: boolean }>) | undefined
  /** Called after each batch, with all records so far and the stream that they belong to. */
  readonly onProgress?: ((records: number, stream: string | undefined) => void) | undefined
  /** Called when a pass has found nothing new. */
  readonly onCaughtUp?: (() => void) | undefined
}

/**
 * Copies streams with their positions, timestamps and configuration. Resolves to what was copied; records of
 * all passes, basins and streams of the last one.
 *
 * @throws TransferError
 */
export async function copy(source: Service, target: Service, options: CopyOptions): Promise<ExportCounts> {
  const { filter, renumber, nextPass, onProgress, onCaughtUp, onWarning } = options
  let records = 0
  let { resume } = options
  const warnings = new Set<string>()
  /** A later pass does not repeat what an earlier one has said. */
  function warn(message: string): void {
    if (!warnings.has(message)) onWarning?.(message)
    warnings.add(message)
  }
  // A copy that is continued is not read again, except for its last record, which is compared.
  const startOf = async (stream: StreamPath) => {
    const copied = renumber ? undefined : await target.findStream(stream)
    const tail = copied && (await target.tail(copied))
    return Math.max(0, (tail?.seqNum ?? 0) - 1)
  }
  for (let isLast = false; ; ) {
    const now = options.now()
    const counts = await importEntries(exportEntries(source, { filter, now, startOf }), target, {
      filter,
      resume,
      renumber,
      now,
      onProgress: (pass, stream) => onProgress?.(records + pass.records, stream),
      onWarning: warn,
    })
    records += counts.records
    if (isLast || nextPass === undefined) return { ...counts, records }
    if (counts.records === 0) onCaughtUp?.()
    resume = true
    isLast = (await nextPass()).isLast
  }
}
