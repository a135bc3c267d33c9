import { useState } from 'preact/hooks'
import { lossyTextOf } from '../../../src/model/bytes.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { StreamTarget } from '../connection.ts'
import { useConsole } from '../context.ts'
import { formatBytes, formatTime, plural } from '../format.ts'
import { curlCommand, readCall, readCommand, readProgram } from '../snippets.ts'
import { Button, CopyButton, Menu, Problem, Scroll } from '../ui/elements.tsx'
import { Select } from '../ui/fields.tsx'
import { Table } from '../ui/table.tsx'
import {
  type BodyFormat,
  commandText,
  formatOf,
  hexTextOf,
  previewOf,
  protobufTypesOf,
  type RenderedBody,
  renderBody,
} from './body.ts'
import { download } from './download.tsx'
import { JsonTree } from './json-tree.tsx'
import { columnValue, quotedTerm } from './query.ts'

/** A record on one line. */
export function RecordRow(props: {
  readonly record: SequencedRecord
  readonly format: BodyFormat
  /** The content in place of headers and body, if any. */
  readonly columns: readonly string[]
}) {
  const { record, format, columns } = props
  const { command, headers } = record
  const time = formatTime(record.timestamp)
  const [date, ofDay = ''] = time.split(' ')
  return (
    <>
      <span class="seq">{record.seqNum}</span>
      <time title={time}>
        <span>{date} </span>
        {ofDay.slice(0, 8)}
        <span>{ofDay.slice(8)}</span>
      </time>
      {command !== undefined ? (
        <span class="body command">
          <span class="tag">{command.kind}</span> {commandText(command)}
        </span>
      ) : columns.length > 0 ? (
        columns.map((column) => (
          <span key={column} class="body">
            {columnValue(column, record).slice(0, PREVIEW_CHARACTERS)}
          </span>
        ))
      ) : (
        <span class="body">
          {headers.map(([name, value], index) => (
            <span key={index} class="header">
              {lossyTextOf(name)}={lossyTextOf(value).slice(0, 40)}
            </span>
          ))}
          {previewOf(record, format)}
        </span>
      )}
    </>
  )
}

const PREVIEW_CHARACTERS = 200
/** More bytes are shown on request only: laying out a megabyte of text takes a moment. */
const SHOWN_BYTES_MAX = 49_152

/** A record with all of its headers and its body. */
export function RecordDetail(props: {
  readonly target: StreamTarget
  readonly record: SequencedRecord
  readonly format: BodyFormat
  readonly onType: (type: string) => void
  readonly onClose: () => void
  /** Adds a term to the filter. */
  readonly onFilter: (term: string) => void
  readonly onColumn: (column: string) => void
  /** Shows the record among those around it. */
  readonly onContext?: (() => void) | undefined
}) {
  const { target, record, format, onType, onClose, onFilter, onColumn, onContext } = props
  const { connection, hasAddress, navigate } = useConsole()
  const { seqNum, timestamp, headers, body, command } = record
  const [isWhole, setWhole] = useState(false)
  const isCut = !isWhole && body.length > SHOWN_BYTES_MAX
  const bodyFormat = formatOf(record, format)
  const isProtobuf = bodyFormat.as === 'protobuf'
  const shown = renderBody(isCut ? body.subarray(0, SHOWN_BYTES_MAX) : body, bodyFormat, isCut)
  const curlText = () => curlCommand(readCall(target, { seqNum, count: 1 }), connection)
  return (
    <aside class="detail" aria-label={`Record ${seqNum}`}>
      <header>
        <h2>Record {seqNum}</h2>
        {command !== undefined && <span class="tag">{command.kind} command</span>}
        <span class="spacer" />
        {onContext !== undefined && (
          <Button class="quiet" onClick={onContext}>
            Show in context
          </Button>
        )}
        <Menu label="Copy">
          <CopyButton text={() => renderBody(body, bodyFormat).text} label="Body" />
          {hasAddress && (
            <>
              <CopyButton label="As curl" text={curlText} />
              <CopyButton label="As CLI command" text={() => readCommand(target, record, connection)} />
              <CopyButton label="As TypeScript" text={() => readProgram(target, record, connection)} />
            </>
          )}
        </Menu>
        <Button
          class="quiet"
          onClick={() => download(`${target.stream}-${seqNum}.bin`, [body as Uint8Array<ArrayBuffer>])}
        >
          Download
        </Button>
        <Button
          class="quiet"
          onClick={() => {
            connection.drafts.set(JSON.stringify([target.basin, target.stream]), record)
            navigate({ view: 'stream', basin: target.basin, stream: target.stream, tab: 'append' })
          }}
        >
          Append again
        </Button>
        <Button class="quiet icon" aria-label="Close the record" onClick={onClose}>
          ✕
        </Button>
      </header>
      <Scroll label={`Contents of record ${seqNum}`}>
        <dl class="facts">
          <dt>Time</dt>
          <dd>
            {formatTime(timestamp)}{' '}
            <span class="hint">{formatTime(timestamp) === String(timestamp) ? 'no date' : timestamp}</span>
          </dd>
          <dt>Body</dt>
          <dd>{formatBytes(body.length)}</dd>
        </dl>
        {command !== undefined && <p>This command {commandText(command)}.</p>}
        {headers.length > 0 && (
          <Table
            label="Headers"
            columns={[
              {
                title: 'Header',
                cell: ([name, value]) => (
                  <Button
                    class="link"
                    title="Filter by this header"
                    onClick={() => onFilter(headerTerm(lossyTextOf(name), lossyTextOf(value)))}
                  >
                    {lossyTextOf(name) || '(empty)'}
                  </Button>
                ),
              },
              {
                title: 'Value',
                cell: ([, value]) => (format.as === 'hex' ? hexTextOf(value) : lossyTextOf(value)),
              },
            ]}
            rows={headers}
          />
        )}
        {shown.note !== undefined && <p class="hint">{shown.note}</p>}
        {isProtobuf && <ProtobufType format={bodyFormat} chosen={format.type} onType={onType} />}
        {body.length === 0 ? (
          <p class="hint">The body is empty.</p>
        ) : (
          <Body shown={shown} {...(!isProtobuf && { onFilter, onColumn })} />
        )}
        {isCut && <Button onClick={() => setWhole(true)}>Show all {formatBytes(body.length)}</Button>}
      </Scroll>
    </aside>
  )
}

function Body(props: {
  readonly shown: RenderedBody
  readonly onFilter?: ((term: string) => void) | undefined
  readonly onColumn?: ((column: string) => void) | undefined
}) {
  const { shown, onFilter, onColumn } = props
  if (shown.json !== undefined) return <JsonTree root={shown.json} onFilter={onFilter} onColumn={onColumn} />
  return <pre class={shown.isHex ? 'hex' : ''}>{shown.text}</pre>
}

function headerTerm(name: string, value: string): string {
  return `${quotedTerm(name)}=${quotedTerm(value)}`
}

const UNREADABLE = new Error(
  'This is not a descriptor set with types, as protoc --descriptor_set_out writes it',
)

/** Says how far the type of a message is known, and loads and chooses types. */
function ProtobufType(props: {
  readonly format: BodyFormat
  /** The type for records that state none. */
  readonly chosen: string
  readonly onType: (type: string) => void
}) {
  const { format, chosen, onType } = props
  const { types, type } = format
  const { setProtobufTypes, announce } = useConsole()
  const [error, setError] = useState<Error>()
  const names = types?.names ?? []
  const isKnown = names.includes(type)
  const unknownType = type ? `The type ${type} is not loaded` : 'No type is known'
  const load = async (file: File | undefined) => {
    if (file === undefined) return
    try {
      const loaded = protobufTypesOf(new Uint8Array(await file.arrayBuffer()))
      setProtobufTypes(loaded)
      setError(undefined)
      announce(`Loaded ${plural(loaded.names.length, 'type')}`)
    } catch {
      setError(UNREADABLE)
    }
  }
  return (
    <>
      <p class="hint">{isKnown ? `Protobuf: ${type}` : `${unknownType}: load a descriptor set with it.`}</p>
      <div class="toolbar">
        <label class="inline" title="Written by protoc --include_imports --descriptor_set_out, or buf build">
          Descriptor set
          <input type="file" onChange={({ currentTarget }) => load(currentTarget.files?.[0])} />
        </label>
        {names.length > 0 && (!isKnown || type === chosen) && (
          <Select
            label="Message type"
            value={chosen}
            options={['', ...names].map((name) => [name, name] as const)}
            onChange={onType}
          />
        )}
      </div>
      <Problem error={error} />
    </>
  )
}
