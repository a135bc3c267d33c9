import { useReducer, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { useConsole } from '../context.ts'
import { appendCall, type CurlTarget } from '../curl.ts'
import { plural } from '../format.ts'
import { useSubmit } from '../ui/async.ts'
import { CurlButton } from '../ui/copy.tsx'
import { Field, Select, TextField } from '../ui/field.tsx'
import { Note, Problem } from '../ui/notice.tsx'
import { batchesOf, recordsOfJson, recordsOfLines, type TextInput } from './append-input.ts'
import { EncryptionKeyField, useEncryptionKey } from './encryption-key.tsx'

type Mode = 'one' | 'lines' | 'json'
type Header = readonly [name: string, value: string]

const LABELS: Readonly<Record<Mode, string>> = { one: 'Body', lines: 'Lines', json: 'JSON array' }
const HINTS: Readonly<Record<Mode, string>> = {
  one: 'The text of the record. Ctrl+Enter appends.',
  lines: 'Each line becomes a record. Ctrl+Enter appends.',
  json: 'Each element becomes a record: a string, any JSON value, or {"body", "headers", "timestamp"}.',
}

/** A form that appends one record, lines, or a JSON array. */
export function Append(props: {
  readonly basin: string
  readonly stream: string
  readonly cipher: string | null | undefined
}) {
  const { basin, stream, cipher } = props
  const { hw } = useConsole().connection
  const [, renderAgain] = useReducer((count: number) => count + 1, 0)
  const target: CurlTarget = { basin, stream, encryptionKey: useEncryptionKey(basin, stream) }
  const [mode, setMode] = useState<Mode>('one')
  const [text, setText] = useState('')
  const [headers, setHeaders] = useState<readonly Header[]>([])
  const [matchSeqNum, setMatchSeqNum] = useState('')
  const [fencingToken, setFencingToken] = useState('')
  const [result, setResult] = useState<string>()
  const conditions = (): AppendConditions => ({
    matchSeqNum: matchSeqNum.trim() === '' ? undefined : sequenceNumber(matchSeqNum),
    fencingToken: fencingToken || undefined,
  })
  const records = (): TextInput[] => {
    if (mode === 'lines') return recordsOfLines(text)
    if (mode === 'json') return recordsOfJson(text)
    return [{ body: text, ...(headers.length > 0 && { headers }) }]
  }
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    setResult(undefined)
    const batches = batchesOf(records())
    if (batches.length === 0) throw new Error('there is nothing to append')
    const handle = hw.basin(basin).stream(stream, { encryptionKey: target.encryptionKey })
    await appendAll(handle, batches, conditions(), (first, end) =>
      setResult(`Appended ${plural(end - first, 'record')}: ${first} to ${end - 1}`),
    )
    if (mode === 'one') setText('')
  })
  return (
    <form class="panel" onSubmit={onSubmit}>
      <div class="toolbar">
        <Select
          label="What to append"
          value={mode}
          options={[
            ['one', 'One record'],
            ['lines', 'Lines'],
            ['json', 'JSON array'],
          ]}
          onChange={setMode}
        />
        <EncryptionKeyField
          basin={basin}
          stream={stream}
          cipher={cipher}
          onChange={() => renderAgain(undefined)}
        />
      </div>
      <Field label={LABELS[mode]} hint={HINTS[mode]}>
        {(control) => (
          <textarea
            {...control}
            rows={8}
            spellcheck={false}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
                event.currentTarget.form!.requestSubmit()
              }
            }}
          />
        )}
      </Field>
      {mode === 'one' && <HeaderFields headers={headers} onChange={setHeaders} />}
      <details>
        <summary>Conditions</summary>
        <div class="fields">
          <TextField
            label="Sequence number"
            hint="Append only if the first record gets this one"
            isNumber
            value={matchSeqNum}
            onInput={setMatchSeqNum}
          />
          <TextField
            label="Fencing token"
            hint="Append only if the stream has this one"
            value={fencingToken}
            onInput={setFencingToken}
          />
        </div>
      </details>
      <Problem error={error} />
      {result !== undefined && (
        <div role="status">
          <Note>{result}</Note>
        </div>
      )}
      <footer>
        <button type="submit" class="primary" disabled={isBusy}>
          Append
        </button>
        <CurlButton call={() => appendCall(target, curlRecords(records), conditions())} />
      </footer>
    </form>
  )
}

/** Headers of a record, as rows of name and value. */
function HeaderFields(props: {
  readonly headers: readonly Header[]
  readonly onChange: (headers: readonly Header[]) => void
}) {
  const { headers, onChange } = props
  const set = (index: number, header: Header) => onChange(headers.with(index, header))
  return (
    <fieldset>
      <legend>Headers</legend>
      {headers.map(([name, value], index) => (
        <div key={index} class="header-row">
          <input
            aria-label={`Name of header ${index + 1}`}
            placeholder="Name"
            required
            value={name}
            onInput={(event) => set(index, [event.currentTarget.value, value])}
          />
          <input
            aria-label={`Value of header ${index + 1}`}
            placeholder="Value"
            value={value}
            onInput={(event) => set(index, [name, event.currentTarget.value])}
          />
          <button
            type="button"
            class="quiet icon"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(headers.toSpliced(index, 1))}
          >
            ✕
          </button>
        </div>
      ))}
      <button type="button" class="quiet" onClick={() => onChange([...headers, ['', '']])}>
        Add header
      </button>
    </fieldset>
  )
}

/** Appends batches in order; the condition of a sequence number continues from one to the next. */
async function appendAll(
  stream: Stream,
  batches: readonly TextInput[][],
  { matchSeqNum, fencingToken }: AppendConditions,
  onProgress: (first: number, end: number) => void,
): Promise<void> {
  let first: number | undefined
  let match = matchSeqNum
  for (const records of batches) {
    const { start, end } = await stream.append(records, { matchSeqNum: match, fencingToken })
    first ??= start.seqNum
    if (match !== undefined) match = end.seqNum
    onProgress(first, end.seqNum)
  }
}

/** What cannot be appended is not in the command either. */
function curlRecords(records: () => TextInput[]): TextInput[] {
  try {
    return records()
  } catch {
    return []
  }
}

function sequenceNumber(text: string): number {
  const value = /^[0-9]+$/.test(text.trim()) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(value)) return value
  throw new Error(`Sequence number: ${JSON.stringify(text)} is not a whole number from 0 to 2^53 - 1`)
}
