import type { AppendConditions, RecordInput } from '../model/append-input.ts'

/** What an append asks for, before the model has validated it: see `appendBatch`. */
export interface DecodedAppend {
  readonly inputs: readonly RecordInput[]
  readonly conditions: AppendConditions
}
