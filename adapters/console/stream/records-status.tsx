import { useEffect } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { formatCount, plural } from '../format.ts'
import { LostConnection, Problem } from '../ui/notice.tsx'
import type { Pager } from './pager.ts'
import type { StreamSearch } from './search.ts'
import type { PagedRecords } from './use-pager.ts'

/** The range of records that is shown, its distance to the tail, and the controls to reach the rest. */
export function RecordsStatus(props: {
  readonly records: PagedRecords
  readonly hasFilter: boolean
  /** The name of the cipher whose key is missing. */
  readonly needsKey: boolean
}) {
  const { records, hasFilter, needsKey } = props
  const { pager, search, window, isFiltered, rate } = records
  const { state, behind } = pager
  const { loss } = useConsole()
  useEffect(() => {
    if (loss === undefined && state.kind === 'retrying') pager.resume()
  }, [loss])
  if (search !== undefined) return <SearchStatus search={search} records={records} />
  return (
    <>
      {state.kind === 'retrying' && loss === undefined && (
        <LostConnection {...state} onRetry={() => pager.resume()} />
      )}
      <p class="status">
        <span class={`state ${needsKey ? 'paused' : state.kind}`} role="status">
          {needsKey ? 'The encryption key is missing' : stateText(pager)}
        </span>
        {window.held > 0 && (
          <span>
            {plural(window.held, 'record')} loaded: {window.first} to {window.end! - 1}
          </span>
        )}
        {hasFilter && (
          <span>
            {formatCount(window.length)} match{isFiltered ? '' : ' so far'}
          </span>
        )}
        {state.kind === 'live' && <span>{formatCount(rate)}/s</span>}
        {behind > 0 && <span>{formatCount(behind)} behind the tail</span>}
        {pager.hasOlder && window.held > 0 && (
          <button type="button" class="link" onClick={() => pager.older()}>
            Load older
          </button>
        )}
        {pager.hasNewer && (
          <button type="button" class="link" onClick={() => pager.newer()}>
            Load newer
          </button>
        )}
      </p>
      {state.kind === 'failed' && !needsKey && <Problem error={state.error} onRetry={() => pager.resume()} />}
    </>
  )
}

const SEARCH_STATES: Readonly<Record<StreamSearch['state'], string>> = {
  running: 'Searching the stream',
  done: 'Searched the whole stream',
  limited: 'Stopped at the limit of records',
  cancelled: 'Cancelled',
  failed: 'The search failed',
}

function SearchStatus({
  search,
  records,
}: {
  readonly search: StreamSearch
  readonly records: PagedRecords
}) {
  const { state, order, found, scanned, total, next, rate, part, error } = search
  const other = order === 'newest' ? 'oldest' : 'newest'
  return (
    <>
      <p class="status">
        <span class={`state ${state}`} role="status">
          {SEARCH_STATES[state]}
        </span>
        <progress value={part} aria-label="Progress of the search" />
        <span>
          {formatCount(scanned)} of {plural(total, 'record')}, {order} first
        </span>
        <span>{formatCount(rate)}/s</span>
        <span>{formatCount(found.held)} found</span>
        {state === 'running' ? (
          <button type="button" class="link" onClick={() => search.cancel()}>
            Cancel
          </button>
        ) : (
          state !== 'done' && (
            <button type="button" class="link" onClick={() => records.searchAll(order, next)}>
              Continue
            </button>
          )
        )}
        <button type="button" class="link" onClick={() => records.searchAll(other)}>
          Search {other} first
        </button>
        <button type="button" class="link" onClick={records.endSearch}>
          Back to the pages
        </button>
      </p>
      <Problem error={error} />
    </>
  )
}

function stateText({ state, isPaused, isLoading }: Pager): string {
  if (isPaused) return 'Paused; resuming skips nothing'
  if (isLoading) return 'Loading'
  return {
    idle: 'Not following',
    connecting: 'Connecting',
    live: 'Live',
    retrying: 'Reconnecting',
    failed: 'Stopped',
  }[state.kind]
}
