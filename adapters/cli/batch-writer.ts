import type { AppendAck, Stream } from '../../src/index.ts'
import type { AppendConditions } from '../../src/model/append-input.ts'
import { lineBatch } from '../../src/model/line-batch.ts'
import { TextLines } from '../../src/storage/text-lines.ts'
import type { RecordBatch } from './record-reader.ts'

/** Appends batches in order, several at a time. */
export interface BatchWriter {
  /**
   * Resolves when there is room for the next batch. The memory of the batch can then be used again. Rejects
   * with the failure of an earlier batch.
   */
  write(batch: RecordBatch): Promise<void>
  /** Resolves when every batch is durable. Rejects with the first failure, after the acks before it. */
  close(): Promise<void>
}

export interface WriterEvents {
  /** Called in order, when a batch is durable. */
  readonly onAck: (ack: AppendAck, batch: RecordBatch) => void
  /** Called once: nothing more is appended. */
  readonly onFailure: () => void
}

/** Opens a writer to a stream of an engine in this process. */
export async function streamWriter(
  stream: Stream,
  conditions: AppendConditions,
  { onAck, onFailure }: WriterEvents,
): Promise<BatchWriter> {
  const session = await stream.appendSession()
  return {
    async write(batch) {
      const { records } = batch
      const ticket = await (records instanceof TextLines
        ? session.submitBatch(lineBatch(records, conditions))
        : session.submit(records, conditions))
      ticket.ack().then((ack) => onAck(ack, batch), onFailure)
    },
    close: () => session.close(),
  }
}
