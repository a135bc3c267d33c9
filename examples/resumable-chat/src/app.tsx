import type { UIMessage } from 'ai'
import { useEffect, useState } from 'react'
import { Chat } from './chat.tsx'
import { followChat } from './follow-chat.ts'

/** Loads the finished messages of a chat, then shows it. */
export function App({ id }: { readonly id: string }) {
  const [stored, setStored] = useState<readonly UIMessage[]>()
  /** Changes when the chat begins again, and holds a question that did not reach the server. */
  const [attempt, setAttempt] = useState<{
    readonly number: number
    readonly unsent?: UIMessage | undefined
  }>({
    number: 0,
  })
  useEffect(() => {
    const leaving = new AbortController()
    void followChat(id, leaving.signal, setStored)
    return () => leaving.abort()
  }, [id])
  if (stored === undefined) return <p role="status">Loading …</p>
  return (
    <Chat
      key={attempt.number}
      id={id}
      stored={stored}
      unsent={attempt.unsent}
      onLost={(unsent) => setAttempt(({ number }) => ({ number: number + 1, unsent }))}
    />
  )
}
