import { useSyncState } from 'headwater/react'
import type { SyncedStream } from 'headwater/sync'

interface Props {
  readonly stream: SyncedStream
  /** The number of changes that have not reached the server yet. */
  readonly pending: number
}

const STOPPED = {
  replaced: 'The list of the server is another one',
  trimmed: 'The server no longer has changes that are missing here',
  missing: 'The server no longer has the list',
  denied: 'The server does not let you read the list',
  failed: 'The list cannot be loaded',
}

/** Shows whether the list is up to date, and what waits. */
export function Connection({ stream, pending }: Props) {
  const state = useSyncState(stream)
  const waiting = pending === 0 ? '' : pending === 1 ? '1 change waits' : `${pending} changes wait`
  if (state.kind === 'stopped') {
    const { mirror } = stream
    const canRetry = state.reason === 'denied' || state.reason === 'failed'
    // If it fails, the button stays.
    const restart = () => mirror.restart().catch(() => {})
    return (
      <p className="connection" data-kind="stopped" role="status">
        <span>{STOPPED[state.reason]}</span>
        <button type="button" className="link" onClick={canRetry ? () => mirror.retry() : restart}>
          {canRetry ? 'Try again' : 'Load it'}
        </button>
      </p>
    )
  }
  const texts = {
    connecting: 'Connecting …',
    'catching-up': 'Loading …',
    live: pending === 0 ? 'Up to date' : 'Saving …',
    offline: 'Offline',
    waiting: 'Waiting',
    closed: 'Closed',
  }
  const text = texts[state.kind]
  return (
    <p className="connection" data-kind={state.kind} role="status">
      {state.kind === 'live' || waiting === '' ? text : `${text} · ${waiting}`}
    </p>
  )
}
