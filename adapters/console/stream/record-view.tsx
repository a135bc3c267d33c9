import { useState } from 'preact/hooks'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { type CurlTarget, readCall } from '../curl.ts'
import { formatBytes, formatTime } from '../format.ts'
import { CopyButton, CurlButton } from '../ui/copy.tsx'
import { Scroll } from '../ui/notice.tsx'
import { commandText, type Format, hexTextOf, previewOf, renderBody } from './record.ts'

/** A record on one line. */
export function RecordRow({ record, format }: { readonly record: SequencedRecord; readonly format: Format }) {
  const { command, headers } = record
  const time = formatTime(record.timestamp)
  return (
    <>
      <span class="seq">{record.seqNum}</span>
      <time title={time}>{time.slice(5)}</time>
      {command === undefined ? (
        <span class="body">
          {headers.map(([name, value], index) => (
            <span key={index} class="header">
              {lossyTextOf(name)}={lossyTextOf(value).slice(0, 40)}
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

/** More bytes are shown on request only: laying out a megabyte of text takes a moment. */
const SHOWN_BYTES_MAX = 49_152

/** A record with all of its headers and its body. */
export function RecordDetail(props: {
  readonly target: CurlTarget
  readonly record: SequencedRecord
  readonly format: Format
  readonly onClose: () => void
}) {
  const { target, record, format, onClose } = props
  const { seqNum, timestamp, headers, body, command } = record
  const [isWhole, setWhole] = useState(false)
  const isCut = !isWhole && body.length > SHOWN_BYTES_MAX
  const shown = renderBody(isCut ? body.subarray(0, SHOWN_BYTES_MAX) : body, format, isCut)
  return (
    <aside class="detail" aria-label={`Record ${seqNum}`}>
      <header>
        <h2>Record {seqNum}</h2>
        {command !== undefined && <span class="tag">{command.kind} command</span>}
        <span class="spacer" />
        <CopyButton text={() => renderBody(body, format).text} label="Copy body" class="quiet" />
        <CurlButton call={() => readCall(target, { seqNum, count: 1 })} />
        <button type="button" class="quiet icon" aria-label="Close the record" onClick={onClose}>
          ✕
        </button>
      </header>
      <Scroll label={`Contents of record ${seqNum}`}>
        <dl class="facts">
          <dt>Time</dt>
          <dd>
            {formatTime(timestamp)} <span class="hint">{timestamp}</span>
          </dd>
          <dt>Body</dt>
          <dd>{formatBytes(body.length)}</dd>
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
                  <td>{lossyTextOf(name) || '(empty)'}</td>
                  <td>{format === 'hex' ? hexTextOf(value) : lossyTextOf(value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {shown.note !== undefined && <p class="hint">{shown.note}</p>}
        {body.length === 0 ? (
          <p class="hint">The body is empty.</p>
        ) : (
          <pre class={shown.isHex ? 'hex' : ''}>{shown.text}</pre>
        )}
        {isCut && (
          <button type="button" onClick={() => setWhole(true)}>
            Show all {formatBytes(body.length)}
          </button>
        )}
      </Scroll>
    </aside>
  )
}
