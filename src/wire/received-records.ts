import { type SequencedRecord, type TextRecord, textRecord } from '../model/record.ts'
import type { BatchRecords } from '../storage/record-batch.ts'

/** Records that a client received. They belong to one reader, so nothing is copied. */
export class ReceivedRecords implements BatchRecords {
  readonly records: readonly SequencedRecord[]
  #text: readonly TextRecord[] | undefined

  constructor(records: readonly SequencedRecord[]) {
    this.records = records
  }

  get text(): readonly TextRecord[] {
    this.#text ??= this.records.map(textRecord)
    return this.#text
  }

  get copy(): ReceivedRecords {
    return this
  }

  /** Not needed: only the engine stores and sends blocks. */
  get data(): never {
    throw new TypeError('received records have no block')
  }

  of(records: readonly SequencedRecord[]): ReceivedRecords {
    return new ReceivedRecords(records)
  }
}
