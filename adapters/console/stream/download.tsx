import type { SequencedRecord } from '../../../src/model/record.ts'
import { Menu } from '../ui/menu.tsx'
import { csvOf, jsonLine } from './export-records.ts'

/** Saves the records that are shown. */
export function DownloadMenu(props: {
  readonly name: string
  readonly records: () => readonly SequencedRecord[]
  readonly columns: readonly string[]
}) {
  const { name, records, columns } = props
  return (
    <Menu label="Download">
      <button type="button" onClick={() => download(`${name}.jsonl`, records().map(jsonLine))}>
        JSON lines
      </button>
      <button type="button" onClick={() => download(`${name}.csv`, [csvOf(records(), columns)])}>
        CSV
      </button>
      <button
        type="button"
        onClick={() =>
          download(
            `${name}.bin`,
            records().map(({ body }) => body as Uint8Array<ArrayBuffer>),
          )
        }
      >
        Bytes of the bodies
      </button>
    </Menu>
  )
}

/** Saves a file. */
export function download(name: string, parts: BlobPart[]): void {
  const url = URL.createObjectURL(new Blob(parts))
  const link = document.createElement('a')
  link.href = url
  link.download = name.replace(/[^\w.-]+/g, '_')
  link.click()
  URL.revokeObjectURL(url)
}
