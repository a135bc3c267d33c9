import { useEffect, useRef, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import type { AppendConditions } from '../../../src/model/append-input.ts'
import { decodeBase64, encodeBase64, lossyTextOf, textOf } from '../../../src/model/bytes.ts'
import { HeadwaterError } from '../../../src/model/errors.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import type { StreamTarget } from '../connection.ts'
import { useConsole } from '../context.ts'
import { plural } from '../format.ts'
import { appendCall } from '../snippets.ts'
import { Button, CurlButton, Link, Problem } from '../ui/elements.tsx'
import {
  Field,
  type FormValues,
  Select,
  TextField,
  useSubmit,
  valuesOf,
  WHOLE_NUMBER,
} from '../ui/fields.tsx'
import { jsonTreeOf } from './body.ts'
import { textOfNode } from './query.ts'

type Header = readonly [name: string, value: string]

/** The kinds of records in the menu: the name, the label of the text, and a hint. */
const MODES = {
  one: ['One record', 'Body', 'The text of the record. Ctrl+Enter appends.'],
  base64: ['One record, in base64', 'Body in base64', 'The bytes of the record. Ctrl+Enter appends.'],
  lines: ['Lines', 'Lines', 'Each line becomes a record. Ctrl+Enter appends.'],
  json: [
    'JSON array',
    'JSON array',
    'Each element becomes a record: a string is its body, and so is the JSON of any other value.',
  ],
  many: [
    'Many from a template',
    'Template',
    'The body of each record. {{n}}, {{now}}, {{random}} stand for its number, the time, a random number.',
  ],
} as const
type Mode = keyof typeof MODES

/** A form that appends one record, lines, or a JSON array. */
export function Append({ target }: { readonly target: StreamTarget }) {
  const { basin, stream } = target
  const { drafts } = useConsole().connection
  const key = JSON.stringify([basin, stream])
  const [draft] = useState(() => draftOf(drafts.get(key)))
  useEffect(() => void drafts.delete(key), [])
  const [mode, setMode] = useState(draft[0])
  const [, label, hint] = MODES[mode]
  const [text, setText] = useState(draft[1])
  const [headers, setHeaders] = useState(draft[2])
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
    stop.current = new AbortController()
    const appended = await appendInTurn(
      target.handle,
      mode === 'many' ? recordsOfTemplate(text, headers, values, stop.current.signal) : records(),
      conditionsOf(values),
      (first, end) => setResult(`Appended ${plural(end - first, 'record')}: ${first} to ${end - 1}`),
    )
    if (appended === 0) throw new Error('there is nothing to append')
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
          <TextField label="Records" name="count" {...WHOLE_NUMBER} required defaultValue="100" />
          <TextField
            label="Rate"
            name="rate"
            hint="Records per second"
            {...WHOLE_NUMBER}
            min={1}
            required
            defaultValue="10"
          />
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
            {...WHOLE_NUMBER}
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
          <CurlButton call={() => appendCall(target, records(), conditionsOf(valuesOf(form.current!)))} />
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

/** The initial content of the form: nothing, or a record to append again. */
function draftOf(record: SequencedRecord | undefined): readonly [Mode, string, readonly Header[]] {
  if (record === undefined) return ['one', '', []]
  const headers = record.headers.map(([name, value]) => [lossyTextOf(name), lossyTextOf(value)] as const)
  const text = textOf(record.body)
  return text === undefined ? ['base64', encodeBase64(record.body), headers] : ['one', text, headers]
}

function bytesOf(text: string): Uint8Array {
  const bytes = decodeBase64(text.trim())
  if (bytes === undefined) throw new Error('the body is not base64')
  return bytes
}

function conditionsOf({ matchSeqNum, fencingToken }: FormValues): AppendConditions {
  return {
    matchSeqNum: matchSeqNum ? Number(matchSeqNum) : undefined,
    fencingToken: fencingToken || undefined,
  }
}

/** A record to append. */
interface TextInput {
  /** Bytes are of a record that is appended again. */
  readonly body: string | Uint8Array
  readonly headers?: readonly Header[] | undefined
}

/** Each line is the body of a record; the last one may lack its line break. */
export function recordsOfLines(text: string): TextInput[] {
  if (text === '') return []
  const lines = text.split(/\r?\n/)
  if (lines.at(-1) === '') lines.pop()
  return lines.map((body) => ({ body }))
}

/**
 * Returns the elements of a JSON array as bodies: a string itself, and the JSON of any other value, with every
 * digit of its numbers. Throws an error with a message for people.
 */
export function recordsOfJson(text: string): TextInput[] {
  const json = jsonTreeOf(text)
  if (json?.items === undefined || json.text[0] !== '[') {
    throw new Error('must be a JSON array, such as ["first", {"id": 2}]')
  }
  return json.items.map(([, element]) => ({ body: textOfNode(element) }))
}

/** Appends records in order, those of a tenth of a second together. Resolves to how many there were. */
async function appendInTurn(
  stream: Stream,
  records: AsyncIterable<TextInput> | Iterable<TextInput>,
  conditions: Pick<AppendConditions, 'matchSeqNum' | 'fencingToken'>,
  onProgress: (first: number, end: number) => void,
): Promise<number> {
  await using producer = stream.producer({ ...conditions, lingerMs: 100 })
  let first: number | undefined
  let count = 0
  for await (const record of records) {
    const ticket = await producer.submit(record)
    count++
    ticket.ack().then(
      ({ seqNum }) => {
        first ??= seqNum
        onProgress(first, seqNum + 1)
      },
      // The failure ends the producer, which reports it.
      () => {},
    )
  }
  await producer.close()
  return count
}

/**
 * Makes records of a template at a rate per second until the signal aborts: `{{n}}` counts from 1, `{{now}}`
 * is the time, `{{random}}` is below 1,000.
 */
async function* recordsOfTemplate(
  body: string,
  headers: readonly Header[],
  { count, rate }: FormValues,
  signal: AbortSignal,
): AsyncGenerator<TextInput> {
  const started = performance.now()
  for (let n = 1; n <= Number(count) && !signal.aborted; n++) {
    const wait = started + ((n - 1) * 1000) / Number(rate) - performance.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    const filled = (text: string) =>
      text
        .replaceAll('{{n}}', String(n))
        .replaceAll('{{now}}', new Date().toISOString())
        .replaceAll('{{random}}', String(Math.floor(Math.random() * 1000)))
    yield { body: filled(body), headers: headers.map(([name, value]) => [filled(name), filled(value)]) }
  }
}
