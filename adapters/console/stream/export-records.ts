import { lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { encodeBase64 } from '../../../src/wire/base64.ts'
import { columnValue } from './match.ts'

/** A record as one line of JSON, as `headwater read --json` prints it; in base64 unless all of it is text. */
export function jsonLine({ seqNum, timestamp, headers, body }: SequencedRecord): string {
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
export function csvOf(records: readonly SequencedRecord[], columns: readonly string[]): string {
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
    .map((row) => `${row.map(cell).join(',')}\r\n`)
    .join('')
}

/** A spreadsheet takes a cell that begins like a formula for one; an apostrophe prevents it. */
function cell(text: string): string {
  const safe = /^[=+@\t\r]|^-(?!\d+(\.\d+)?$)/.test(text) ? `'${text}` : text
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe
}
