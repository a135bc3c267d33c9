import type { SyncedBasin } from 'headwater/sync'
import { type SubmitEvent, useCallback, useEffect, useState, useSyncExternalStore } from 'react'
import { Room } from './room.tsx'

/** The rooms, and the one in the address. */
export function App({ rooms }: { rooms: SyncedBasin }) {
  const names = useRoomNames(rooms)
  const name = useSyncExternalStore(onHashChange, () => decodeURIComponent(location.hash.slice(1)))
  const [author, setAuthor] = useState(localStorage.getItem('author') ?? 'Guest')
  useEffect(() => localStorage.setItem('author', author), [author])

  function create(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    location.hash = encodeURIComponent(String(new FormData(event.currentTarget).get('room')).trim())
    event.currentTarget.reset()
  }

  return (
    <div className="app" data-room={name !== ''}>
      <nav aria-label="Rooms">
        <h1>Chat</h1>
        <label>
          Your name
          <input value={author} maxLength={40} onChange={(event) => setAuthor(event.target.value)} />
        </label>
        <ul>
          {names.map((each) => (
            <li key={each}>
              <a href={`#${encodeURIComponent(each)}`} aria-current={each === name ? 'page' : undefined}>
                {each}
              </a>
            </li>
          ))}
        </ul>
        <form onSubmit={create} autoComplete="off">
          <input
            name="room"
            aria-label="New room"
            placeholder="New room"
            maxLength={100}
            pattern=".*\S.*"
            required
          />
          <button type="submit">Create</button>
        </form>
      </nav>
      {name === '' ? <p className="empty">Choose or create a room.</p> : null}
      {name !== '' && <Room key={name} name={name} stream={rooms.stream(`rooms/${name}`)} author={author} />}
    </div>
  )
}

/** The names of all rooms, also of those that other devices create. */
function useRoomNames(rooms: SyncedBasin): string[] {
  const subscribe = useCallback(
    (onChange: () => void) => {
      const subscription = rooms.streams$.subscribe(onChange)
      return () => subscription.unsubscribe()
    },
    [rooms],
  )
  const streams = useSyncExternalStore(subscribe, () => rooms.streams)
  return streams.map(({ name }) => name.slice('rooms/'.length))
}

function onHashChange(listener: () => void) {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}
