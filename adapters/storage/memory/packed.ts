export { PackedDocuments } from './packed-documents.ts'
export { PackedLogs } from './packed-logs.ts'
