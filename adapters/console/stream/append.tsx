import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { decodeBase64, encodeBase64, lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import { BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { useConsole } from '../context.ts'
import { plural } from '../format.ts'
import { appendCall, type CurlTarget } from '../snippets.ts'
import { Button, CurlButton, Link, Problem } from '../ui/elements.tsx'
import { Field, type FormValues, Select, TextField, useSubmit, valuesOf } from '../ui/fields.tsx'
import {
  batchesOf,
  PLACEHOLDERS,
  recordOfTemplate,
  recordsOfJson,
  recordsOfLines,
  type TextInput,
} from './append-input.ts'

type Header = readonly [name: string, value: string]

/** The kinds of records in the menu: the name, the label of the text, and a hint. */
const MODES = {
  one: ['One record', 'Body', 'The text of the record. Ctrl+Enter appends.'],
  base64: ['One record, in base64', 'Body in base64', 'The bytes of the record. Ctrl+Enter appends.'],
  lines: ['Lines', 'Lines', 'Each line becomes a record. Ctrl+Enter appends.'],
  json: [
    'JSON array',
    'JSON array',
    'Each element becomes a record: a string, any JSON value, or {"body", "headers", "timestamp"}.',
  ],
  many: [
    'Many from a template',
    'Template',
    `The body of each record. ${PLACEHOLDERS.join(', ')} stand for its number, the time, a random number.`,
  ],
} as const
type Mode = keyof typeof MODES

/** A form that appends one record, lines, or a JSON array. */
export function Append({ target }: { readonly target: CurlTarget }) {
  const { basin, stream, encryptionKey } = target
  const { hw } = useConsole().connection
  const draft = useDraft(basin, stream)
  const [mode, setMode] = useState<Mode>(draft.mode)
  const [, label, hint] = MODES[mode]
  const [text, setText] = useState(draft.text)
  const [headers, setHeaders] = useState<readonly Header[]>(draft.headers)
  const stop = useRef(new AbortController())
  useEffect(() => () => stop.current.abort(), [])
  const form = useRef<HTMLFormElement>(null)
  const [result, setResult] = useState<string>()
  const records = (): TextInput[] => {
    if (mode === 'lines') return recordsOfLines(text)
    if (mode === 'json') return recordsOfJson(text)
    const body = mode === 'base64' ? bytesOf(text) : text
    return [{ body, ...(headers.length > 0 && { headers }) }]
  }
  const { isBusy, error, onSubmit } = useSubmit(async (values) => {
    setResult(undefined)
    const handle = hw.basin(basin).stream(stream, { encryptionKey })
    const onProgress = (first: number, end: number) =>
      setResult(`Appended ${plural(end - first, 'record')}: ${first} to ${end - 1}`)
    const append = (batches: AsyncIterable<TextInput[]> | TextInput[][]) =>
      appendInTurn(handle, batches, conditionsOf(values), onProgress)
    if (mode === 'many') {
      stop.current = new AbortController()
      const recordOf = (n: number) => recordOfTemplate({ body: text, headers }, n, Date.now(), Math.random())
      const [count, rate] = [Number(values.count), Number(values.rate)]
      await append(batchesAtRate(count, rate, recordOf, stop.current.signal))
      return
    }
    const batches = batchesOf(records())
    if (batches.length === 0) throw new Error('there is nothing to append')
    await append(batches)
    if (mode === 'one') setText('')
  })
  return (
    <form ref={form} class="panel" onSubmit={onSubmit}>
      <div class="toolbar">
        <Select
          label="What to append"
          value={mode}
          options={Object.entries(MODES).map(([one, [name]]) => [one as Mode, name] as const)}
          onChange={setMode}
        />
      </div>
      <Field label={label} hint={hint}>
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
      {mode === 'many' && (
        <div class="fields">
          <TextField label="Records" name="count" isNumber isRequired initial="100" />
          <TextField label="Rate" name="rate" hint="Records per second" isNumber isRequired initial="10" />
        </div>
      )}
      {mode !== 'lines' && mode !== 'json' && <HeaderFields headers={headers} onChange={setHeaders} />}
      <details>
        <summary>Conditions</summary>
        <div class="fields">
          <TextField
            label="Sequence number"
            name="matchSeqNum"
            hint="Append only if the first record gets this one"
            isNumber
          />
          <TextField
            label="Fencing token"
            name="fencingToken"
            hint="Append only if the stream has this one"
          />
        </div>
      </details>
      <Problem error={error} />
      <Doubt error={error} basin={basin} stream={stream} />
      {result !== undefined && (
        <p class="notice" role="status">
          {result}
        </p>
      )}
      <footer>
        <button type="submit" class="primary" disabled={isBusy}>
          Append
        </button>
        {mode === 'many' && isBusy && <Button onClick={() => stop.current.abort()}>Stop</Button>}
        {mode !== 'many' && (
          <CurlButton
            call={() => appendCall(target, curlRecords(records), conditionsOf(valuesOf(form.current!)))}
          />
        )}
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
          <Button
            class="quiet icon"
            aria-label={`Remove header ${index + 1}`}
            onClick={() => onChange(headers.toSpliced(index, 1))}
          >
            ✕
          </Button>
        </div>
      ))}
      <Button class="link" onClick={() => onChange([...headers, ['', '']])}>
        Add header
      </Button>
    </fieldset>
  )
}

/** States what is safe after an append that failed or whose outcome is unknown. */
function Doubt(props: {
  readonly error: Error | undefined
  readonly basin: string
  readonly stream: string
}) {
  const { error, basin, stream } = props
  if (!HeadwaterError.is(error)) return null
  if (!error.mayHaveEffects) return <p class="hint">Nothing of it was stored: it is safe to append again.</p>
  return (
    <p class="notice bad">
      The records may have been stored: appending them again could store them twice.{' '}
      <Link to={{ view: 'stream', basin, stream, tab: 'records' }}>Look at the tail first</Link>, or append
      with the sequence number that you expect as a condition.
    </p>
  )
}

interface Draft {
  readonly mode: Mode
  readonly text: string
  readonly headers: readonly Header[]
}

/** The initial content of the form: nothing, or a record to append again. */
function useDraft(basin: string, stream: string): Draft {
  const { drafts } = useConsole()
  return useMemo(() => {
    const key = JSON.stringify([basin, stream])
    const record = drafts.get(key)
    drafts.delete(key)
    if (record === undefined) return { mode: 'one', text: '', headers: [] }
    const text = textOf(record.body)
    return {
      mode: text === undefined ? 'base64' : 'one',
      text: text ?? encodeBase64(record.body),
      headers: record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const),
    }
  }, [])
}

function bytesOf(text: string): Uint8Array {
  const bytes = decodeBase64(text.trim())
  if (bytes === undefined) throw new Error('the body is not base64')
  return bytes
}

/** Returns the records for the curl command, which omits records that cannot be appended. */
function curlRecords(records: () => TextInput[]): TextInput[] {
  try {
    return records()
  } catch {
    return []
  }
}

function conditionsOf({ matchSeqNum, fencingToken }: FormValues): AppendConditions {
  return {
    matchSeqNum: matchSeqNum ? Number(matchSeqNum) : undefined,
    fencingToken: fencingToken || undefined,
  }
}

/** Appends batches in order; the condition of a sequence number continues from one to the next. */
async function appendInTurn(
  stream: Stream,
  batches: AsyncIterable<TextInput[]> | TextInput[][],
  { matchSeqNum, fencingToken }: AppendConditions,
  onProgress: (first: number, end: number) => void,
): Promise<void> {
  let first: number | undefined
  let match = matchSeqNum
  for await (const records of batches) {
    const { start, end } = await stream.append(records, { matchSeqNum: match, fencingToken })
    first ??= start.seqNum
    if (match !== undefined) match = end.seqNum
    onProgress(first, end.seqNum)
  }
}

/** The shortest time between two appends, in milliseconds. */
const TICK_MS = 100

/** Makes records at a rate per second, those of a tenth of a second together, until the signal aborts. */
async function* batchesAtRate(
  count: number,
  rate: number,
  recordOf: (n: number) => TextInput,
  signal: AbortSignal,
): AsyncGenerator<TextInput[]> {
  if (rate === 0) throw new Error('the rate must be 1 or more')
  const started = performance.now()
  let made = 0
  while (made < count && !signal.aborted) {
    const due = Math.min(count, 1 + Math.floor(((performance.now() - started) * rate) / 1000))
    const first = made + 1
    const length = Math.min(due - made, BATCH_RECORDS_MAX)
    yield* batchesOf(Array.from({ length }, (_, index) => recordOf(first + index)))
    made += length
    if (made === due) await new Promise((resolve) => setTimeout(resolve, Math.max(TICK_MS, 1000 / rate)))
  }
}
