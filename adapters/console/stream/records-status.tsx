import type { ComponentChildren } from 'preact'
import { useConsole } from '../context.ts'
import { formatCount, plural } from '../format.ts'
import { Button, Problem } from '../ui/elements.tsx'
import type { PagedRecords, StreamSearch } from './paged-records.ts'
import type { Pager } from './pager.ts'

/** The range of records that is shown, its distance to the tail, and the controls to reach the rest. */
export function RecordsStatus(props: {
  readonly records: PagedRecords
  /** Continues a search. */
  readonly onSearch: (end: number | undefined) => void
  readonly hasFilter: boolean
  /** Whether the records are encrypted and no key was entered. */
  readonly needsKey: boolean
}) {
  const { records, onSearch, hasFilter, needsKey } = props
  const { pager, search, window } = records
  const { state, behind } = pager
  const { loss } = useConsole()
  if (search !== undefined) {
    const { found, scanned, total, error } = search
    const isRunning = search.state === 'running'
    return (
      <>
        <Status
          state={search.state}
          text={SEARCH_STATES[search.state]}
          facts={[
            `${formatCount(scanned)} of ${plural(total, 'record')}, the newest first`,
            `${formatCount(found.held)} found`,
          ]}
          actions={[
            [isRunning, 'Cancel', () => search.cancel()],
            [!isRunning && search.state !== 'done', 'Continue', () => onSearch(search.next)],
            [true, 'Back to the pages', records.endSearch],
          ]}
        >
          <progress value={scanned} max={total || 1} aria-label="Progress of the search" />
        </Status>
        <Problem error={error} />
      </>
    )
  }
  return (
    <>
      <Status
        state={needsKey ? 'paused' : state.kind}
        text={needsKey ? 'The encryption key is missing' : stateText(pager)}
        facts={[
          window.held > 0 && `${plural(window.held, 'record')} loaded: ${window.first} to ${window.end! - 1}`,
          hasFilter && `${formatCount(window.shown.length)} match`,
          behind > 0 && `${formatCount(behind)} behind the tail`,
        ]}
        actions={[
          [pager.hasOlder && window.held > 0, 'Load older', () => pager.older()],
          [pager.hasNewer, 'Load newer', () => pager.newer()],
        ]}
      />
      {state.kind === 'failed' && !needsKey && loss === undefined && (
        <Problem error={state.error} onRetry={() => pager.resume()} />
      )}
    </>
  )
}

/** A state, facts about it, and what can be done. */
function Status(props: {
  readonly state: string
  readonly text: string
  readonly facts: readonly (string | false)[]
  readonly actions: readonly (readonly [isOffered: boolean, label: string, act: () => void])[]
  readonly children?: ComponentChildren
}) {
  const { state, text, facts, actions, children } = props
  return (
    <p class="status">
      <span class={`state ${state}`} role="status">
        {text}
      </span>
      {children}
      {facts.map((fact) => fact && <span>{fact}</span>)}
      {actions.map(
        ([isOffered, label, act]) =>
          isOffered && (
            <Button key={label} class="link" onClick={act}>
              {label}
            </Button>
          ),
      )}
    </p>
  )
}

const SEARCH_STATES: Readonly<Record<StreamSearch['state'], string>> = {
  running: 'Searching the stream',
  done: 'Searched the whole stream',
  limited: 'Stopped at the limit of records',
  cancelled: 'Cancelled',
  failed: 'The search failed',
}

function stateText({ state, isPaused, isLoading }: Pager): string {
  if (isPaused) return 'Paused; resuming skips nothing'
  if (isLoading) return 'Loading'
  return { idle: 'Not following', connecting: 'Connecting', live: 'Live', failed: 'Stopped' }[state.kind]
}
