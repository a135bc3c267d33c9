import { useState } from 'preact/hooks'
import { readCall } from '../curl.ts'
import { formatCount, plural } from '../format.ts'
import { useDebounced } from '../ui/async.ts'
import { CurlButton } from '../ui/copy.tsx'
import { Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import { EncryptionKeyField, useEncryptionKey } from './encryption-key.tsx'
import type { Format } from './record.ts'
import { RecordDetail, RecordRow } from './record-view.tsx'
import type { Start } from './tail.ts'
import { type Tail, type TailState, useTail } from './use-tail.ts'

/** The height of a row, in CSS pixels; `.row` in `views.css` has the same. */
const ROW_HEIGHT = 24

/** The records of a stream, live. */
export function Records(props: {
  readonly basin: string
  readonly stream: string
  readonly cipher: string | null | undefined
}) {
  const { basin, stream, cipher } = props
  const encryptionKey = useEncryptionKey(basin, stream)
  const target = { basin, stream, encryptionKey }
  const [start, setStart] = useState<Start>({ tailOffset: 100 })
  const [isPaused, setPaused] = useState(false)
  const [isFollowing, setFollowing] = useState(true)
  const [format, setFormat] = useState<Format>('text')
  const [typed, setTyped] = useState('')
  const filter = useDebounced(typed, 150)
  const [selected, setSelected] = useState<number>()
  const tail = useTail(target, start, isPaused, filter)
  const { buffer, state } = tail
  const needsKey = state.kind === 'failed' && typeof cipher === 'string' && encryptionKey === ''

  const index = selected === undefined ? -1 : buffer.indexOf(selected)
  const record = buffer.at(index)
  const digits = String(buffer.at(buffer.length - 1)?.seqNum ?? 0).length
  return (
    <section class="records">
      <div class="toolbar">
        <StartForm
          onStart={(next) => {
            setStart(next)
            setPaused(false)
            setSelected(undefined)
            // A start in the past is read from its beginning.
            setFollowing(next.tailOffset !== undefined)
          }}
        />
        <button
          type="button"
          aria-keyshortcuts="p"
          class={isPaused ? 'active' : ''}
          onClick={() => setPaused(!isPaused)}
        >
          {isPaused ? 'Resume' : 'Pause'}
        </button>
        <input
          type="search"
          aria-label="Filter records by text"
          placeholder="Filter"
          aria-keyshortcuts="/"
          spellcheck={false}
          value={typed}
          onInput={(event) => setTyped(event.currentTarget.value)}
        />
        <Select
          label="Show bodies as"
          value={format}
          options={[
            ['text', 'Text'],
            ['json', 'JSON'],
            ['hex', 'Hex'],
          ]}
          onChange={setFormat}
        />
        <EncryptionKeyField
          basin={basin}
          stream={stream}
          cipher={cipher}
          onChange={() => setStart({ ...start })}
        />
        <span class="spacer" />
        <CurlButton call={() => readCall(target, { ...start, waitMs: Number.POSITIVE_INFINITY })} />
      </div>
      <Status tail={tail} hasFilter={filter !== ''} needsKey={needsKey} />
      {state.kind === 'failed' && !needsKey && <Problem error={state.error} />}
      <div class={record === undefined ? 'split' : 'split open'}>
        <div class="log" style={{ '--digits': Math.max(4, digits) }}>
          {buffer.length === 0 ? (
            <p class="empty">
              {needsKey
                ? `The records are encrypted with ${cipher}. Enter the encryption key above to read them.`
                : emptyText(tail, filter)}
            </p>
          ) : (
            <VirtualList
              label="Records"
              count={buffer.length}
              rowHeight={ROW_HEIGHT}
              renderRow={(row) => <RecordRow record={buffer.at(row)!} format={format} />}
              selected={index}
              onSelect={(row) => {
                setSelected(buffer.at(row)!.seqNum)
                // New records must not move the selected one away.
                setFollowing(false)
              }}
              onEscape={() => setSelected(undefined)}
              dropped={buffer.dropped}
              isFollowing={isFollowing}
              onFollow={setFollowing}
            />
          )}
          {!isFollowing && buffer.length > 0 && (
            <button type="button" class="to-end" aria-keyshortcuts="e" onClick={() => setFollowing(true)}>
              ↓ To the end
            </button>
          )}
        </div>
        {record !== undefined && (
          <RecordDetail
            key={record.seqNum}
            target={target}
            record={record}
            format={format}
            onClose={() => setSelected(undefined)}
          />
        )}
      </div>
    </section>
  )
}

function Status(props: { readonly tail: Tail; readonly hasFilter: boolean; readonly needsKey: boolean }) {
  const { tail, hasFilter, needsKey } = props
  const { buffer, state, rate, behind, isFiltered } = tail
  return (
    <p class="status">
      <span class={`state ${needsKey ? 'paused' : state.kind}`} role="status">
        {needsKey ? 'The encryption key is missing' : stateText(state)}
      </span>
      <span>{plural(buffer.received, 'record')} received</span>
      {hasFilter && (
        <span>
          {formatCount(buffer.length)} match{isFiltered ? '' : ' so far'}
        </span>
      )}
      {state.kind === 'following' && <span>{formatCount(rate)}/s</span>}
      {behind > 0 && <span>{formatCount(behind)} behind the tail</span>}
      {buffer.received > buffer.kept && <span>the latest {formatCount(buffer.kept)} are kept</span>}
    </p>
  )
}

function stateText(state: TailState): string {
  if (state.kind === 'retrying') return `Reconnecting: ${state.message}`
  if (state.kind === 'paused') return 'Paused: not reading; resuming skips nothing'
  return { connecting: 'Connecting', following: 'Live', failed: 'Stopped' }[state.kind]
}

function emptyText({ buffer, state, isFiltered }: Tail, filter: string): string {
  if (buffer.kept > 0) {
    return isFiltered
      ? `None of the ${plural(buffer.kept, 'record')} kept contains “${filter}”.`
      : 'Filtering …'
  }
  return state.kind === 'following' ? 'No records yet. New ones appear here.' : ''
}

/** Chooses the first record of a tail. */
function StartForm({ onStart }: { readonly onStart: (start: Start) => void }) {
  const [kind, setKind] = useState<keyof Start>('tailOffset')
  const [count, setCount] = useState('100')
  const [time, setTime] = useState(() => localTime(Date.now() - 3_600_000))
  const value = kind === 'timestamp' ? Date.parse(time) : Number(count)
  const isValid = kind === 'timestamp' ? value >= 0 : /^[0-9]+$/.test(count) && Number.isSafeInteger(value)
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault()
        if (isValid) onStart({ [kind]: value })
      }}
    >
      <Select
        label="Start from"
        value={kind}
        options={[
          ['tailOffset', 'Records before the tail'],
          ['seqNum', 'Sequence number'],
          ['timestamp', 'Time'],
        ]}
        onChange={setKind}
      />
      {kind === 'timestamp' ? (
        <input
          type="datetime-local"
          step="1"
          aria-label="Time"
          value={time}
          onInput={(event) => setTime(event.currentTarget.value)}
        />
      ) : (
        <input
          class="short"
          inputMode="numeric"
          aria-label={kind === 'seqNum' ? 'Sequence number' : 'Records before the tail'}
          aria-invalid={!isValid}
          value={count}
          onInput={(event) => setCount(event.currentTarget.value)}
        />
      )}
      <button type="submit" disabled={!isValid}>
        Start
      </button>
    </form>
  )
}

/** A local time as the field takes it, to the second. */
function localTime(ms: number): string {
  const date = new Date(ms)
  return new Date(ms - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19)
}
