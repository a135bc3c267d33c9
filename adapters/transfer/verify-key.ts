import type { Header, SequencedRecord, StreamPosition } from '../../src/index.ts'
import { equalBytes } from '../../src/model/bytes.ts'
import { isCommandShaped } from '../../src/model/record.ts'
import type { ExportedStream } from './export-entry.ts'
import { type Service, streamLabel } from './service.ts'
import { TransferError } from './transfer-error.ts'

/**
 * Verifies the key before an append to an encrypted stream that has records, which would otherwise have
 * records under two keys: reads them, which fails with another key, and compares the last one.
 */
export async function verifyKey(
  service: Service,
  stream: ExportedStream,
  target: {
    readonly end: StreamPosition
    /** The expected last record, if known. */
    readonly before: SequencedRecord | undefined
    readonly warn: (message: string) => void
  },
): Promise<void> {
  const { end, before, warn } = target
  try {
    const [last] = await recordsFrom(service, stream, end.seqNum - 1, 1)
    if (last !== undefined && before !== undefined && !isSame(last, before)) {
      throw new TransferError(`${streamLabel(stream)}: its record ${last.seqNum} differs from the export`)
    }
    // A command is not encrypted, and an expired record cannot be read: try the earliest records.
    if (last === undefined || isCommandShaped(last.headers)) await recordsFrom(service, stream, 0)
  } catch (error) {
    if (!(error instanceof TransferError) || error.code !== 'permission_denied') throw error
    warn(
      `${streamLabel(stream)} is encrypted, and the access token does not permit reads: make sure that this is its key`,
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
