import type { Header, SequencedRecord, StreamPosition } from '../../src/index.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import { isCommandShaped } from '../../src/model/command.ts'
import type { ExportedStream } from './export-entry.ts'
import { aboutStream, type Service } from './service.ts'
import { TransferError } from './transfer-error.ts'

/**
 * Before more is appended to an encrypted stream that has records: reads what can be read of them, which fails with another key than theirs, and compares
 * the last one. Otherwise one stream could have records of two keys.
 */
export async function proveKey(
  service: Service,
  stream: ExportedStream,
  target: {
    readonly end: StreamPosition
    /** The record that should be the last one. */
    readonly before: SequencedRecord | undefined
    readonly warn: (message: string) => void
  },
): Promise<void> {
  const { end, before, warn } = target
  try {
    const [last] = await recordsFrom(service, stream, end.seqNum - 1, 1)
    if (last !== undefined && before !== undefined && !isSame(last, before)) {
      throw new TransferError(
        `${aboutStream(stream)}: its record ${last.seqNum} is another than that of the export`,
      )
    }
    // Commands are not encrypted, and what has expired cannot be read.
    if (last === undefined || isCommandShaped(last.headers)) await recordsFrom(service, stream, 0)
  } catch (error) {
    if (!(error instanceof TransferError) || error.code !== 'permission_denied') throw error
    warn(
      `${aboutStream(stream)} is encrypted, and the access token permits no look whether it has this key: make sure that it does`,
    )
  }
}

async function recordsFrom(
  service: Service,
  stream: ExportedStream,
  seqNum: number,
  count?: number,
): Promise<readonly SequencedRecord[]> {
  const read = await service.read(stream, seqNum, count)
  return 'records' in read ? read.records : []
}

function isSame(a: SequencedRecord, b: SequencedRecord): boolean {
  return equalBytes(a.body, b.body) && sameHeaders(a.headers, b.headers)
}

function sameHeaders(a: readonly Header[], b: readonly Header[]): boolean {
  return (
    a.length === b.length &&
    a.every(([name, value], i) => equalBytes(name, b[i]![0]) && equalBytes(value, b[i]![1]))
  )
}
