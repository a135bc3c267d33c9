import { useSyncState } from 'headwater/react'
import type { SyncedStream } from 'headwater/sync'

interface Props {
  readonly stream: SyncedStream
  /** The number of changes that have not reached the server yet. */
  readonly pending: number
}

/** Shows whether the list is up to date, and what waits. */
export function Connection({ stream, pending }: Props) {
  const state = useSyncState(stream)
  const waiting = pending === 0 ? '' : pending === 1 ? '1 change waits' : `${pending} changes wait`
  if (state.kind === 'stopped') {
    return (
      <p className="connection" data-kind="stopped" role="status">
        <span>The list of the server is another one</span>
        <button type="button" className="link" onClick={() => void stream.mirror.restart()}>
          Load it
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
