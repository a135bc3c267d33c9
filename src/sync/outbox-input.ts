import { type AppendBatch, appendBatch, batchSizeError, type RecordInput } from '../model/append-input.ts'
import { lossyTextOf } from '../model/bytes.ts'
import { isCommandShaped } from '../model/command.ts'
import { invalid } from '../model/errors.ts'
import { BATCH_METERED_BYTES_MAX } from '../model/limits.ts'
import { ORIGIN_HEADER, ORIGIN_METERED_BYTES, OUTBOX_HEADER } from './outbox-log.ts'

/**
 * Validates records for an outbox, and copies them. Throws `invalid` for what a stream rejects, for command
 * records, which have a meaning only in their place on the server, and for headers of the outbox itself.
 */
export function outboxInput(
  input: RecordInput | readonly RecordInput[],
): Pick<AppendBatch, 'records' | 'meteredBytes'> {
  const batch = appendBatch(input)
  for (const { headers } of batch.records) {
    if (isCommandShaped(headers)) {
      throw invalid('an outbox cannot send command records; use the remote stream', 'records')
    }
    for (const [name] of headers) {
      const text = lossyTextOf(name)
      if (text !== OUTBOX_HEADER && text !== ORIGIN_HEADER) continue
      throw invalid(`the header \`${text}\` is reserved for outboxes`, 'headers')
    }
  }
  const meteredBytes = batch.meteredBytes + batch.records.length * ORIGIN_METERED_BYTES
  if (meteredBytes > BATCH_METERED_BYTES_MAX) throw batchSizeError(batch.records.length)
  return { records: batch.records, meteredBytes }
}
