import { useStream, useSyncState } from 'headwater/react'
import type { SyncedStream } from 'headwater/sync'
import { type SubmitEvent, useEffect, useMemo, useRef, useState } from 'react'

interface Message {
  readonly author: string
  readonly text: string
}

interface RoomProps {
  readonly name: string
  readonly stream: SyncedStream
  readonly author: string
}

/** The messages of a room as this device has them, with those that wait to be sent. */
export function Room({ name, stream, author }: RoomProps) {
  // A record that is not JSON is left out.
  const messages = useMemo(() => stream.json<Message>({ onUndecodable: () => {} }), [stream])
  const { records, error } = useStream(messages, { tailOffset: 200 })
  const [failure, setFailure] = useState<Error>()
  const list = useRef<HTMLOListElement>(null)
  const last = records.at(-1)?.key
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when there is a new message
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight })
  }, [last])

  async function send(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    const text = String(new FormData(form).get('text'))
    form.reset()
    try {
      // Resolves when the message is stored on this device.
      await messages.append({ author, text })
    } catch (error) {
      setFailure(error as Error)
    }
  }

  const problem = error ?? failure
  return (
    <section aria-label={name}>
      <header>
        {/* biome-ignore lint/a11y/useValidAnchor: the address without a room */}
        <a href="#" aria-label="All rooms">
          ‹
        </a>
        <h1>{name}</h1>
        <Connection stream={stream} />
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the list */}
      <ol ref={list} aria-label="Messages" tabIndex={0}>
        {records.map(({ key, value, isPending, timestamp }) => (
          <li key={key} data-mine={value.author === author} data-pending={isPending}>
            <strong>{value.author}</strong> <time>{isPending ? 'waits' : timeOf(timestamp)}</time>
            <p>{value.text}</p>
          </li>
        ))}
      </ol>
      {problem !== undefined && <p role="alert">{problem.message}</p>}
      <form onSubmit={send} autoComplete="off">
        <input name="text" aria-label="Message" placeholder="Message" pattern=".*\S.*" required />
        <button type="submit">Send</button>
      </form>
    </section>
  )
}

const STATES = {
  connecting: 'Connecting …',
  'catching-up': 'Syncing …',
  live: 'In sync',
  waiting: 'In sync',
  offline: 'Offline: messages are sent later',
  closed: 'Closed',
}

function Connection({ stream }: { stream: SyncedStream }) {
  const state = useSyncState(stream)
  if (state.kind !== 'stopped') return <span role="status">{STATES[state.kind]}</span>
  // The server has lost the room, or has another one: what this device has stays until the user decides.
  return (
    <span role="status">
      Stopped: {state.reason}{' '}
      <button type="button" onClick={() => void stream.mirror.restart().catch(() => {})}>
        Load the room of the server
      </button>
    </span>
  )
}

function timeOf(timestamp: number): string {
  return new Date(timestamp).toLocaleTimeString([], { timeStyle: 'short' })
}
