export { CopySource, copy } from './copy.ts'
export type { ExportCounts } from './export-entry.ts'
export { createExportFile, type ExportFile, resumeExportFile } from './export-file.ts'
export { countPositions, type ExportedLines, exportLines } from './export-lines.ts'
export { gunzipped } from './gzip.ts'
export { assertUnoccupied, importLines } from './import-lines.ts'
export { type ByteSink, LineSink, linesOf } from './lines.ts'
export {
  type NameFilter,
  nameFilterText,
  parseNameFilter,
  type TransferFilter,
} from './name-filter.ts'
export { Service, type ServiceOptions } from './service.ts'
export { TransferError } from './transfer-error.ts'
