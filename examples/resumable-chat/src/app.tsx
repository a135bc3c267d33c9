import type { UIMessage } from 'ai'
import { useEffect, useState, useSyncExternalStore } from 'react'
import { Chat } from './chat.tsx'
import { followChat } from './follow-chat.ts'

/** The chats, and the one in the address. */
export function App() {
  const id = useSyncExternalStore(onHashChange, () => location.hash.slice(1))
  const [chats, setChats] = useState<readonly { id: string; title: string }[]>([])
  const [changes, setChanges] = useState(0)
  // biome-ignore lint/correctness/useExhaustiveDependencies: a chat may be new
  useEffect(() => {
    if (id === '') location.replace(`#${crypto.randomUUID()}`)
    fetch('/api/chats').then(
      async (response) => setChats(await response.json()),
      () => {},
    )
  }, [id, changes])
  return (
    <>
      <nav aria-label="Chats">
        <a href={`#${crypto.randomUUID()}`}>New chat</a>
        {chats.map((chat) => (
          <a key={chat.id} href={`#${chat.id}`} aria-current={chat.id === id ? 'page' : undefined}>
            {chat.title}
          </a>
        ))}
      </nav>
      {id !== '' && <FollowedChat key={id} id={id} onChange={() => setChanges((number) => number + 1)} />}
    </>
  )
}

/** Loads the finished messages of a chat, then shows it. */
function FollowedChat({ id, onChange }: { id: string; onChange: () => void }) {
  const [stored, setStored] = useState<readonly UIMessage[]>()
  const [isOffline, setOffline] = useState(false)
  /** Changes when the chat begins again, and holds a question that did not reach the server. */
  const [attempt, setAttempt] = useState<{ number: number; unsent?: UIMessage | undefined }>({ number: 0 })
  useEffect(() => {
    const leaving = new AbortController()
    void followChat(id, leaving.signal, setStored, setOffline)
    return () => leaving.abort()
  }, [id])
  const count = stored?.length ?? 0
  // biome-ignore lint/correctness/useExhaustiveDependencies: the first question is the title of the chat
  useEffect(onChange, [count])
  if (stored === undefined) return <main>{isOffline ? 'Offline' : 'Loading …'}</main>
  return (
    <Chat
      key={attempt.number}
      id={id}
      stored={stored}
      isOffline={isOffline}
      unsent={attempt.unsent}
      onLost={(unsent) => setAttempt(({ number }) => ({ number: number + 1, unsent }))}
    />
  )
}

function onHashChange(listener: () => void) {
  window.addEventListener('hashchange', listener)
  return () => window.removeEventListener('hashchange', listener)
}
