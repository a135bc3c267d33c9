import { useConsole } from '../context.ts'
import { formatCount, plural } from '../format.ts'
import { Button, Problem } from '../ui/elements.tsx'
import type { Pager } from './pager.ts'
import type { StreamSearch } from './search.ts'
import type { PagedRecords } from './use-pager.ts'

/** The range of records that is shown, its distance to the tail, and the controls to reach the rest. */
export function RecordsStatus(props: {
  readonly records: PagedRecords
  /** Continues a search. */
  readonly onSearch: (end: number | undefined) => void
  readonly hasFilter: boolean
  /** The name of the cipher whose key is missing. */
  readonly needsKey: boolean
}) {
  const { records, onSearch, hasFilter, needsKey } = props
  const { pager, search, window } = records
  const { state, behind } = pager
  const { loss } = useConsole()
  if (search !== undefined) {
    return <SearchStatus search={search} onContinue={() => onSearch(search.next)} onEnd={records.endSearch} />
  }
  return (
    <>
      <p class="status">
        <span class={`state ${needsKey ? 'paused' : state.kind}`} role="status">
          {needsKey ? 'The encryption key is missing' : stateText(pager)}
        </span>
        {window.held > 0 && (
          <span>
            {plural(window.held, 'record')} loaded: {window.first} to {window.end! - 1}
          </span>
        )}
        {hasFilter && <span>{formatCount(window.shown.length)} match</span>}
        {behind > 0 && <span>{formatCount(behind)} behind the tail</span>}
        {pager.hasOlder && window.held > 0 && (
          <Button class="link" onClick={() => pager.older()}>
            Load older
          </Button>
        )}
        {pager.hasNewer && (
          <Button class="link" onClick={() => pager.newer()}>
            Load newer
          </Button>
        )}
      </p>
      {state.kind === 'failed' && !needsKey && loss === undefined && (
        <Problem error={state.error} onRetry={() => pager.resume()} />
      )}
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

function SearchStatus(props: {
  readonly search: StreamSearch
  readonly onContinue: () => void
  readonly onEnd: () => void
}) {
  const { search, onContinue, onEnd } = props
  const { state, found, scanned, total, error } = search
  return (
    <>
      <p class="status">
        <span class={`state ${state}`} role="status">
          {SEARCH_STATES[state]}
        </span>
        <progress value={scanned} max={total || 1} aria-label="Progress of the search" />
        <span>
          {formatCount(scanned)} of {plural(total, 'record')}, the newest first
        </span>
        <span>{formatCount(found.held)} found</span>
        {state === 'running' ? (
          <Button class="link" onClick={() => search.cancel()}>
            Cancel
          </Button>
        ) : (
          state !== 'done' && (
            <Button class="link" onClick={onContinue}>
              Continue
            </Button>
          )
        )}
        <Button class="link" onClick={onEnd}>
          Back to the pages
        </Button>
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
    failed: 'Stopped',
  }[state.kind]
}
