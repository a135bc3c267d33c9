// What sessions, producers, `appendAll` and the reading of JSON need, loaded together: each module that is
// loaded on its own divides the rest into more chunks, with imports and exports of their own.
export { AppendSession } from './append-session.ts'
export { generateAcks } from './generate-acks.ts'
export { JsonAppendSession } from './json-append-session.ts'
export { decodeJsonRecords } from './json-decoder.ts'
export { RecordBatcher } from './record-batcher.ts'
