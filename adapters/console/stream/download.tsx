import { encodeBase64, lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { Button, Menu } from '../ui/elements.tsx'
import { columnValue } from './query.ts'

/** Saves the records that are shown. */
export function DownloadMenu(props: {
  readonly name: string
  readonly records: readonly SequencedRecord[]
  readonly columns: readonly string[]
}) {
  const { name, records, columns } = props
  return (
    <Menu label="Download">
      <Button onClick={() => download(`${name}.jsonl`, records.map(jsonLine))}>JSON lines</Button>
      <Button onClick={() => download(`${name}.csv`, [csvOf(records, columns)])}>CSV</Button>
      <Button onClick={() => download(`${name}.bin`, records.map(bodyOf))}>Bytes of the bodies</Button>
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

function bodyOf({ body }: SequencedRecord): BlobPart {
  return body as Uint8Array<ArrayBuffer>
}

/** A record as one line of JSON, as `headwater read --json` prints it; in base64 unless all of it is text. */
function jsonLine({ seqNum, timestamp, headers, body }: SequencedRecord): string {
  const parts = [body, ...headers.flat()]
  const isText = parts.every((bytes) => textOf(bytes) !== undefined)
  const form = isText ? lossyTextOf : encodeBase64
  return `${JSON.stringify({
    seq_num: seqNum,
    timestamp,
    ...(headers.length > 0 && { headers: headers.map(([name, value]) => [form(name), form(value)]) }),
    body: form(body),
    ...(!isText && { format: 'base64' }),
  })}\n`
}

/** Records as CSV with a line of titles: sequence number, time, the columns, else headers and body. */
function csvOf(records: readonly SequencedRecord[], columns: readonly string[]): string {
  const titles = columns.length > 0 ? columns : ['headers', 'body']
  const rows = records.map((record) => {
    const { seqNum, timestamp, headers, body } = record
    const whole = () => [
      headers.map(([name, value]) => `${lossyTextOf(name)}=${lossyTextOf(value)}`).join('; '),
      lossyTextOf(body),
    ]
    const values = columns.length > 0 ? columns.map((column) => columnValue(column, record)) : whole()
    return [String(seqNum), String(timestamp), ...values]
  })
  return [['seq_num', 'timestamp', ...titles], ...rows]
    .map((row) => `${row.map(csvCell).join(',')}\r\n`)
    .join('')
}

/** Quotes a cell of CSV. An apostrophe keeps a spreadsheet from evaluating one that begins like a formula. */
function csvCell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d+(\.\d+)?$)/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
