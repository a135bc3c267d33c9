import type { ExportCounts } from '../transfer/index.ts'

/** `2 basins, 1 stream, 12,345 records`. */
export function transferSummary({ basins, streams, records }: ExportCounts): string {
  return [counted(basins, 'basin'), counted(streams, 'stream'), counted(records, 'record')].join(', ')
}

export function counted(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}
