import { useState } from 'preact/hooks'
import type { WireRecord } from '../api/types.ts'
import { formatBytes, formatTime } from '../format.ts'
import { CopyButton, CurlButton } from '../ui/copy.tsx'
import { Scroll } from '../ui/notice.tsx'
import type { StreamTarget } from './follow.ts'
import {
  bytesOf,
  commandOf,
  commandText,
  decodedLength,
  decodeText,
  type Format,
  hexOf,
  previewOf,
  renderBody,
} from './record.ts'

/** A record on one line. */
export function RecordRow({ record, format }: { readonly record: WireRecord; readonly format: Format }) {
  const command = commandOf(record)
  const headers = record.headers ?? []
  const time = formatTime(record.timestamp)
  return (
    <>
      <span class="seq">{record.seq_num}</span>
      <time title={time}>{time.slice(5)}</time>
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

/** More than this is shown on request only: laying out a megabyte of text takes a moment. */
const BODY_BASE64_MAX = 65_536

/** A record with all of its headers and its body. */
export function RecordDetail(props: {
  readonly target: StreamTarget
  readonly record: WireRecord
  readonly format: Format
  readonly onClose: () => void
}) {
  const { target, record, format, onClose } = props
  const { seq_num, timestamp, headers = [], body = '' } = record
  const [isWhole, setWhole] = useState(false)
  const isCut = !isWhole && body.length > BODY_BASE64_MAX
  const shown = renderBody(isCut ? body.slice(0, BODY_BASE64_MAX) : body, format, isCut)
  const command = commandOf(record)
  return (
    <aside class="detail" aria-label={`Record ${seq_num}`}>
      <header>
        <h2>Record {seq_num}</h2>
        {command !== undefined && <span class="tag">{command.kind} command</span>}
        <span class="spacer" />
        <CopyButton text={() => renderBody(body, format).text} label="Copy body" class="quiet" />
        <CurlButton
          call={() => ({
            method: 'GET',
            path: ['streams', target.stream, 'records'],
            basin: target.basin,
            query: { seq_num, count: 1 },
            encryptionKey: target.encryptionKey,
          })}
        />
        <button type="button" class="quiet icon" aria-label="Close the record" onClick={onClose}>
          ✕
        </button>
      </header>
      <Scroll label={`Contents of record ${seq_num}`}>
        <dl class="facts">
          <dt>Time</dt>
          <dd>
            {formatTime(timestamp)} <span class="hint">{timestamp}</span>
          </dd>
          <dt>Body</dt>
          <dd>{formatBytes(decodedLength(body))}</dd>
        </dl>
        {command !== undefined && <p>This command {commandText(command)}.</p>}
        {headers.length > 0 && (
          <table aria-label="Headers">
            <thead>
              <tr>
                <th scope="col">Header</th>
                <th scope="col">Value</th>
              </tr>
            </thead>
            <tbody>
              {headers.map(([name, value], index) => (
                <tr key={index}>
                  <td>{decodeText(name) || '(empty)'}</td>
                  <td>{format === 'hex' ? hexOf(bytesOf(value)) : decodeText(value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {shown.note !== undefined && <p class="hint">{shown.note}</p>}
        {body === '' ? (
          <p class="hint">The body is empty.</p>
        ) : (
          <pre class={shown.isHex ? 'hex' : ''}>{shown.text}</pre>
        )}
        {isCut && (
          <button type="button" onClick={() => setWhole(true)}>
            Show all {formatBytes(decodedLength(body))}
          </button>
        )}
      </Scroll>
    </aside>
  )
}
