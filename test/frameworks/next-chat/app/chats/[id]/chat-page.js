'use client'

import { stream } from '@durable-streams/client'
import { useEffect, useState } from 'react'
import { Chat } from './chat.js'

const RETRY_MS = 1_000

/** Follows the finished messages of a chat, which other pages may add to. */
export function ChatPage({ id, finished }) {
  const [stored, setStored] = useState(finished)
  /** Changes when the chat begins again, and holds a question that did not reach the server. */
  const [attempt, setAttempt] = useState({ number: 0 })
  useEffect(() => {
    const leaving = new AbortController()
    void follow(id, leaving.signal, (messages) => {
      setStored((known) => (messages.length > known.length ? messages : known))
    })
    return () => leaving.abort()
  }, [id])
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

async function follow(id, signal, onMessages) {
  const url = `${location.origin}/v1/stream/chats/${id}`
  while (!signal.aborted) {
    try {
      const messages = []
      const live = await stream({ url, live: 'sse', json: true, offset: '-1', signal })
      for await (const message of live.jsonStream()) {
        messages.push(message)
        onMessages([...messages])
      }
    } catch (error) {
      if (!signal.aborted) console.warn('the chat cannot be followed', error)
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}
