import { useEffect, useState } from 'preact/hooks'
import { formatCount, plural } from '../format.ts'
import { CurlButton } from '../ui/copy.tsx'
import { Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { useDebounced } from '../ui/use-load.ts'
import { VirtualList } from '../ui/virtual-list.tsx'
import { EncryptionKeyField, useEncryptionKey } from './encryption-key.tsx'
import { followCall, type Start } from './follow.ts'
import type { Format } from './record.ts'
import { RECORDS_MAX } from './record-buffer.ts'
import { RecordDetail } from './record-detail.tsx'
import { RecordRow } from './record-row.tsx'
import { StartForm } from './start-form.tsx'
import { type Tail, type TailState, useTail } from './use-tail.ts'

/** The height of a row, in CSS pixels; `.row` in `records.css` has the same. */
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
  const [start, setStart] = useState<Start>({ kind: 'tail_offset', value: 100 })
  const [isPaused, setPaused] = useState(false)
  const [isFollowing, setFollowing] = useState(true)
  const [format, setFormat] = useState<Format>('text')
  const [typed, setTyped] = useState('')
  const filter = useDebounced(typed, 150)
  const [selected, setSelected] = useState<number>()
  const tail = useTail(target, start, isPaused)
  const { buffer, state } = tail
  const [, setApplied] = useState('')
  useEffect(() => {
    buffer.filter(filter)
    setApplied(filter)
  }, [buffer, filter])

  const index = selected === undefined ? -1 : buffer.indexOf(selected)
  const record = buffer.at(index)
  return (
    <section class="records">
      <div class="toolbar">
        <StartForm
          onStart={(next) => {
            setStart(next)
            setPaused(false)
            setSelected(undefined)
            // A start in the past is read from its beginning.
            setFollowing(next.kind === 'tail_offset')
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
        <CurlButton call={() => followCall(target, start)} />
      </div>
      <Status tail={tail} isFiltered={filter !== ''} />
      {state.kind === 'failed' && <Problem error={state.error} />}
      <div class={record === undefined ? 'split' : 'split open'}>
        <div class="log">
          {buffer.length === 0 ? (
            <p class="empty">{emptyText(state, filter)}</p>
          ) : (
            <VirtualList
              label="Records"
              count={buffer.length}
              rowHeight={ROW_HEIGHT}
              renderRow={(row) => <RecordRow record={buffer.at(row)!} format={format} />}
              selected={index}
              onSelect={(row) => setSelected(buffer.at(row)!.seq_num)}
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
            key={record.seq_num}
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

function Status({ tail, isFiltered }: { readonly tail: Tail; readonly isFiltered: boolean }) {
  const { buffer, state, rate, behind } = tail
  return (
    <p class="status">
      <span class={`state ${state.kind}`} role="status">
        {stateText(state)}
      </span>
      <span>{plural(buffer.received, 'record')} received</span>
      {isFiltered && <span>{formatCount(buffer.length)} match</span>}
      {state.kind === 'following' && <span>{formatCount(rate)}/s</span>}
      {behind > 0 && <span>{formatCount(behind)} behind the tail</span>}
      {buffer.received > buffer.kept && <span>the latest {formatCount(buffer.kept)} are kept</span>}
    </p>
  )
}

function stateText(state: TailState): string {
  if (state.kind === 'retrying') return `Reconnecting: ${state.message}`
  if (state.kind === 'paused') return 'Paused: not reading; resuming skips nothing'
  return { connecting: 'Connecting', following: 'Live', ended: 'Ended', failed: 'Stopped' }[state.kind]
}

function emptyText(state: TailState, filter: string): string {
  if (filter !== '') return `No record among the latest ${formatCount(RECORDS_MAX)} contains “${filter}”.`
  return state.kind === 'following' ? 'No records yet. New ones appear here.' : ''
}
