import { useCallback, useEffect, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { formatTime } from '../format.ts'
import { AT_TAIL, FORMATS, placeOf, placeText, type RecordsPlace } from '../route.ts'
import { type CurlTarget, readCall } from '../snippets.ts'
import { Button, CurlButton } from '../ui/elements.tsx'
import { Select } from '../ui/fields.tsx'
import { useDebounced } from '../ui/load.ts'
import { VirtualList } from '../ui/virtual-list.tsx'
import { DownloadMenu } from './download.tsx'
import type { Start } from './pager.ts'
import { wordsOf } from './query.ts'
import { RecordDetail, RecordRow } from './record-view.tsx'
import { RecordsStatus } from './records-status.tsx'
import { type PagedRecords, usePager } from './use-pager.ts'

/** The height of a row, in CSS pixels; `.row` in `views.css` has the same. */
const ROW_HEIGHT = 24
/** So many records before the one that an address names are loaded, too. */
const CONTEXT_RECORDS = 20

/** The records of a stream: pages in both directions from any position, and live at the tail. */
export function Records(props: {
  readonly target: CurlTarget
  /** The cipher of the records, null if there is none; undefined if it is not known. */
  readonly cipher: string | null | undefined
  /** The place of the address; see `placeText`. */
  readonly initial: string | undefined
}) {
  const { target, cipher, initial } = props
  const { basin, stream, encryptionKey } = target
  const [place, setPlace] = usePlace(basin, stream, initial)
  const { record: selected, filter = '', format = 'auto', type = '' } = place
  const columns = wordsOf(place.columns ?? '')
  const { protobufTypes } = useConsole()
  const bodies = { as: format, types: protobufTypes, type }
  const [start, setStart] = useState(() => startOf(place))
  const [isFollowing, setFollowing] = useState(start === AT_TAIL)
  const settled = useDebounced(filter, 150)
  const records = usePager(target, start, settled)
  const { pager, window, search, problem } = records
  pager.isAtEnd = isFollowing
  const { state } = pager
  const needsKey = state.kind === 'failed' && typeof cipher === 'string' && encryptionKey === ''
  const show = (next: Start) => {
    setStart(next)
    records.endSearch()
    pager.isPaused = false
    // A start in the past is read from its beginning.
    const follows = next.tailOffset !== undefined
    setFollowing(follows)
    setPlace({ record: undefined, from: follows ? undefined : next })
    pager.open(next)
  }
  const searchFrom = (end?: number) => {
    setPlace({ record: undefined })
    setFollowing(true)
    records.searchAll(end)
  }
  const goToEnd = () => {
    if (pager.hasNewer || search !== undefined) show(AT_TAIL)
    else {
      setPlace({ record: undefined })
      setFollowing(true)
    }
  }

  const { shown } = window
  const index = window.indexOf(selected)
  const record = shown[index]
  const keyOf = useCallback((row: number) => shown[row]!.seqNum, [shown])
  const digits = String(shown.at(-1)?.seqNum ?? 0).length
  return (
    <section class="records">
      <div class="toolbar">
        <StartForm onStart={show} />
        <Button
          aria-keyshortcuts="p"
          class={pager.isPaused ? 'active' : ''}
          onClick={() => (pager.isPaused ? pager.resume() : pager.pause())}
        >
          {pager.isPaused ? 'Resume' : 'Pause'}
        </Button>
        <input
          type="search"
          aria-label="Filter records"
          placeholder="Filter"
          title={QUERY_HELP}
          aria-keyshortcuts="/"
          aria-invalid={problem !== undefined}
          spellcheck={false}
          value={filter}
          onInput={(event) => setPlace({ filter: event.currentTarget.value })}
        />
        <Button
          disabled={settled.trim() === '' || settled !== filter || problem !== undefined}
          onClick={() => searchFrom()}
        >
          Search the stream
        </Button>
        <input
          class="columns-field"
          aria-label="Columns"
          placeholder="Columns"
          title="Paths of JSON and names of headers, separated by spaces: .id tenant"
          spellcheck={false}
          value={place.columns}
          onInput={(event) => setPlace({ columns: event.currentTarget.value })}
        />
        <Select
          label="Show bodies as"
          value={format}
          options={FORMATS}
          onChange={(next) => setPlace({ format: next })}
        />
        <span class="spacer" />
        <DownloadMenu name={stream} records={shown} columns={columns} />
        <CurlButton call={() => readCall(target, { ...start, waitMs: Number.POSITIVE_INFINITY })} />
      </div>
      {problem !== undefined && <p class="problem">{problem}</p>}
      <RecordsStatus
        records={records}
        onSearch={searchFrom}
        hasFilter={settled.trim() !== ''}
        needsKey={needsKey}
      />
      <div class={record === undefined ? 'split' : 'split open'}>
        <div class="log" style={{ '--digits': Math.max(4, digits), '--columns': columns.length }}>
          {columns.length > 0 && shown.length > 0 && (
            <div class="row titles" aria-hidden="true">
              <span />
              <span />
              {columns.map((column) => (
                <span key={column} class="body">
                  {column}
                </span>
              ))}
            </div>
          )}
          {shown.length === 0 ? (
            <p class="empty">
              {needsKey
                ? `The records are encrypted with ${cipher}. Enter the encryption key above to read them.`
                : emptyText(records, settled)}
            </p>
          ) : (
            <VirtualList
              label="Records"
              count={shown.length}
              rowHeight={ROW_HEIGHT}
              renderRow={(row) => <RecordRow record={shown[row]!} format={bodies} columns={columns} />}
              keyOf={keyOf}
              selected={index}
              onSelect={(row) => {
                setPlace({ record: shown[row]?.seqNum })
                // New records must not move the selected one away.
                setFollowing(false)
              }}
              onEscape={() => setPlace({ record: undefined })}
              isFollowing={isFollowing && (search !== undefined || !pager.hasNewer)}
              onFollow={(next) => {
                // Before the tail, staying at the end would load one page after the other. An open record
                // stays in view.
                setFollowing(next && !pager.hasNewer && selected === undefined)
                if (next && !pager.hasNewer) setPlace({ from: undefined })
              }}
              onTop={(row) => {
                const seqNum = shown[row]?.seqNum
                if (!isFollowing && search === undefined && seqNum !== undefined)
                  setPlace({ from: { seqNum } })
              }}
              onNear={(end) => {
                if (search !== undefined || pager.isPaused) return
                if (end === 'first') pager.older()
                else if (pager.hasNewer) pager.newer()
              }}
            />
          )}
          {(!isFollowing || pager.hasNewer) && shown.length > 0 && (
            <Button class="to-end" aria-keyshortcuts="e" onClick={goToEnd}>
              ↓ To the end
            </Button>
          )}
        </div>
        {record !== undefined && (
          <RecordDetail
            key={record.seqNum}
            target={target}
            record={record}
            format={bodies}
            onType={(next) => setPlace({ type: next })}
            onClose={() => setPlace({ record: undefined })}
            onFilter={(term) => setPlace({ filter: `${filter} ${term}`.trim() })}
            onColumn={(column) => setPlace({ columns: [...columns, column].join(' ') })}
            {...(search !== undefined && {
              onContext: () => {
                const from = { seqNum: Math.max(0, record.seqNum - CONTEXT_RECORDS) }
                show(from)
                setPlace({ from, record: record.seqNum, filter: '' })
              },
            })}
          />
        )}
      </div>
    </section>
  )
}

const QUERY_HELP = `text  "with spaces"  header=value  .path.to[0]>=5  .path="a b"
~ contains   != is not   all terms must hold`

/** The place in the address, which changes with the place at once. */
function usePlace(basin: string, stream: string, initial: string | undefined) {
  const { replaceRoute } = useConsole()
  const [place, setPlace] = useState<RecordsPlace>(() => placeOf(initial))
  // Browsers limit how often the address changes.
  const text = useDebounced(placeText(place), 200)
  useEffect(() => {
    if (text !== (initial ?? '')) replaceRoute({ view: 'stream', basin, stream, tab: 'records', place: text })
  }, [text])
  return [place, (change: RecordsPlace) => setPlace((before) => ({ ...before, ...change }))] as const
}

function startOf({ from, record }: RecordsPlace): Start {
  if (from !== undefined || record === undefined) return from ?? AT_TAIL
  return { seqNum: Math.max(0, record - CONTEXT_RECORDS) }
}

function emptyText({ pager, search }: PagedRecords, filter: string): string {
  if (search !== undefined) return search.state === 'running' ? 'Nothing found yet.' : 'Nothing found.'
  if (pager.window.held > 0) return `No record that is loaded matches “${filter}”.`
  if (pager.state.kind === 'live')
    return `No records ${pager.tail ? 'from here on' : 'yet'}. New ones appear here.`
  return pager.isLoading || pager.state.kind !== 'idle' ? '' : 'No records from here on.'
}

/** Chooses the first record that is shown. */
function StartForm({ onStart }: { readonly onStart: (start: Start) => void }) {
  const [kind, setKind] = useState<keyof Start>('tailOffset')
  const [count, setCount] = useState('100')
  const [time, setTime] = useState(() => Date.now() - 3_600_000)
  const value = kind === 'timestamp' ? time : Number(count)
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
          ['tailOffset', 'Before the tail'],
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
          value={formatTime(time, 'second').replace(' ', 'T')}
          onChange={(event) => setTime(fromLocal(event.currentTarget.valueAsNumber))}
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

/** The time of a field, which takes the local time for that of UTC. */
function fromLocal(ms: number): number {
  return ms + new Date(ms).getTimezoneOffset() * 60_000
}
