import { useCallback, useEffect, useState } from 'preact/hooks'
import type { StreamTarget } from '../connection.ts'
import { useConsole, useDebounced } from '../context.ts'
import { formatTime } from '../format.ts'
import { readCall } from '../snippets.ts'
import { Button, CurlButton } from '../ui/elements.tsx'
import { Select, valuesOf } from '../ui/fields.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import type { Format } from './body.ts'
import { DownloadMenu } from './download.tsx'
import { type PagedRecords, usePagedRecords } from './paged-records.ts'
import type { Start } from './pager.ts'
import { wordsOf } from './query.ts'
import { RecordDetail, RecordRow } from './record-view.tsx'
import { RecordsStatus } from './records-status.tsx'

/** The height of a row, in CSS pixels; `.row` in `views.css` has the same. */
const ROW_HEIGHT = 24
/** So many records before the one that an address names are loaded, too. */
const CONTEXT_RECORDS = 20
/** The records tab without a choice. */
const AT_TAIL: Start = { tailOffset: 100 }

/** The state of the tab, as its address stores it: `from=12&q=a%3Db&columns=.id`. Empty counts as absent. */
interface RecordsPlace {
  /** The first record in view, see {@link startOf}; absent at the tail. */
  readonly from?: string
  /** The sequence number of the record that is open. */
  readonly record?: string
  /** The filter. */
  readonly q?: string
  /** Paths of JSON and names of headers that are shown in columns, separated by spaces. */
  readonly columns?: string
  readonly as?: Format
  /** The message type of protobuf whose records state none. */
  readonly type?: string
}

/** The formats of bodies that can be chosen. */
const FORMATS = [
  ['auto', 'JSON or text'],
  ['text', 'Text'],
  ['hex', 'Hex'],
  ['protobuf', 'Protobuf'],
] as const

/** The records of a stream: pages in both directions from any position, and live at the tail. */
export function Records(props: {
  readonly target: StreamTarget
  /** The cipher of the records, null if there is none; undefined if it is not known. */
  readonly cipher: string | null | undefined
  /** The place of the address. */
  readonly initial: string | undefined
}) {
  const { target, cipher, initial } = props
  const { stream, encryptionKey } = target
  const [place, setPlace] = usePlace(target, initial)
  const { q: filter = '', type = '' } = place
  const selected = startOf(place.record)?.seqNum
  const [format] = FORMATS.find(([one]) => one === place.as) ?? FORMATS[0]
  const columns = wordsOf(place.columns ?? '')
  const { protobufTypes } = useConsole()
  const bodies = { as: format, types: protobufTypes, type }
  const [start, setStart] = useState<Start>(() => {
    if (place.from || selected === undefined) return startOf(place.from) ?? AT_TAIL
    return { seqNum: Math.max(0, selected - CONTEXT_RECORDS) }
  })
  const [isFollowing, setFollowing] = useState(start === AT_TAIL)
  const settled = useDebounced(filter, 150)
  const records = usePagedRecords(target.handle, start, settled)
  const { pager, window, search, problem } = records
  pager.isAtEnd = isFollowing
  const { state } = pager
  const needsKey = state.kind === 'failed' && typeof cipher === 'string' && encryptionKey === ''
  const show = (from: string) => {
    const next = startOf(from) ?? AT_TAIL
    setStart(next)
    records.endSearch()
    pager.isPaused = false
    // A start in the past is read from its beginning.
    const follows = next.tailOffset !== undefined
    setFollowing(follows)
    setPlace({ record: '', from: follows ? '' : from })
    pager.open(next)
  }
  const follow = () => {
    setPlace({ record: '' })
    setFollowing(true)
  }
  const searchFrom = (end?: number) => {
    follow()
    records.searchAll(end)
  }
  const goToEnd = () => {
    if (pager.hasNewer || search !== undefined) show('')
    else follow()
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
          onInput={(event) => setPlace({ q: event.currentTarget.value })}
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
        <Select label="Show bodies as" value={format} options={FORMATS} onChange={(as) => setPlace({ as })} />
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
                setPlace({ record: String(shown[row]?.seqNum ?? '') })
                // New records must not move the selected one away.
                setFollowing(false)
              }}
              onEscape={() => setPlace({ record: '' })}
              isFollowing={isFollowing && (search !== undefined || !pager.hasNewer)}
              onFollow={(next) => {
                // Before the tail, staying at the end would load one page after the other. An open record
                // stays in view.
                setFollowing(next && !pager.hasNewer && selected === undefined)
                if (next && !pager.hasNewer) setPlace({ from: '' })
              }}
              onTop={(row) => {
                const seqNum = shown[row]?.seqNum
                if (!isFollowing && search === undefined && seqNum !== undefined)
                  setPlace({ from: String(seqNum) })
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
            onClose={() => setPlace({ record: '' })}
            onFilter={(term) => setPlace({ q: `${filter} ${term}`.trim() })}
            onColumn={(column) => setPlace({ columns: [...columns, column].join(' ') })}
            {...(search !== undefined && {
              onContext: () => {
                show(String(Math.max(0, record.seqNum - CONTEXT_RECORDS)))
                setPlace({ record: String(record.seqNum), q: '' })
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
function usePlace({ basin, stream }: StreamTarget, initial = '') {
  const { replaceRoute } = useConsole()
  const [place, setPlace] = useState<RecordsPlace>(Object.fromEntries(new URLSearchParams(initial)))
  const parts = Object.entries(place).filter(([, value]) => value !== '' && value !== 'auto')
  // Browsers limit how often the address changes.
  const text = useDebounced(String(new URLSearchParams(parts)), 200)
  useEffect(() => {
    if (text !== initial) replaceRoute({ view: 'stream', basin, stream, tab: 'records', place: text })
  }, [text])
  return [place, (change: RecordsPlace) => setPlace((before) => ({ ...before, ...change }))] as const
}

/** The start of a text: a sequence number, `-100` before the tail, or `t` and milliseconds. */
function startOf(text = ''): Start | undefined {
  const [, kind, digits] = /^([-t]?)(\d{1,15})$/.exec(text) ?? []
  if (digits === undefined) return undefined
  const value = Number(digits)
  if (kind === 't') return { timestamp: value }
  return kind === '-' ? { tailOffset: value } : { seqNum: value }
}

function emptyText({ pager, search }: PagedRecords, filter: string): string {
  if (search !== undefined) return search.state === 'running' ? 'Nothing found yet.' : 'Nothing found.'
  if (pager.window.held > 0) return `No record that is loaded matches “${filter}”.`
  if (pager.state.kind === 'live')
    return `No records ${pager.tail ? 'from here on' : 'yet'}. New ones appear here.`
  return pager.isLoading || pager.state.kind !== 'idle' ? '' : 'No records from here on.'
}

/** Chooses the first record that is shown, as {@link startOf} reads it. */
function StartForm({ onStart }: { readonly onStart: (from: string) => void }) {
  const [kind, setKind] = useState<'-' | '' | 't'>('-')
  const [anHourAgo] = useState(() => formatTime(Date.now() - 3_600_000, 'second').replace(' ', 'T'))
  return (
    <form
      class="inline"
      onSubmit={(event) => {
        event.preventDefault()
        const { value = '' } = valuesOf(event.currentTarget)
        onStart(`${kind}${kind === 't' ? Date.parse(value) : value}`)
      }}
    >
      <Select
        label="Start from"
        value={kind}
        options={[
          ['-', 'Before the tail'],
          ['', 'Sequence number'],
          ['t', 'Time'],
        ]}
        onChange={setKind}
      />
      {kind === 't' ? (
        <input
          type="datetime-local"
          step="1"
          min="1970-01-02T00:00"
          name="value"
          required
          aria-label="Time"
          defaultValue={anHourAgo}
        />
      ) : (
        <input
          class="short"
          inputMode="numeric"
          pattern="\d{1,15}"
          title="A whole number"
          name="value"
          required
          aria-label={kind === '' ? 'Sequence number' : 'Records before the tail'}
          defaultValue="100"
        />
      )}
      <button type="submit">Start</button>
    </form>
  )
}
