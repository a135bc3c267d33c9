import type { WireRecord } from '../api/types.ts'
import { formatTime } from '../format.ts'
import { commandOf, commandText, decodeText, type Format, previewOf } from './record.ts'

/** A record on one line. */
export function RecordRow({ record, format }: { readonly record: WireRecord; readonly format: Format }) {
  const command = commandOf(record)
  const headers = record.headers ?? []
  return (
    <>
      <span class="seq">{record.seq_num}</span>
      <time>{formatTime(record.timestamp).slice(11)}</time>
      {command === undefined ? (
        <span class="body">
          {headers.map(([name, value], index) => (
            <span key={index} class="header">
              {decodeText(name)}={decodeText(value).slice(0, 40)}
            </span>
          ))}
          {previewOf(record.body, format)}
        </span>
      ) : (
        <span class="body command">
          <span class="tag">{command.kind}</span> {commandText(command)}
        </span>
      )}
    </>
  )
}
