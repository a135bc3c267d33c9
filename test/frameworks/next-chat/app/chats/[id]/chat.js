import { useChat } from '@ai-sdk/react'
import { createDurableChatTransport } from '@durable-streams/aisdk-transport'
import { useEffect, useState, useSyncExternalStore } from 'react'

const RETRY_MS = 1_000
const transport = createDurableChatTransport({ api: '/api/chat' })
const never = () => () => {}

/** A chat whose answers come from streams. `onLost` is called some time after the connection was lost. */
export function Chat({ id, stored, unsent, onLost }) {
  const [text, setText] = useState('')
  const [initial] = useState(() => (unsent === undefined ? stored : [...stored, unsent]))
  const chat = useChat({ id, messages: initial, transport, resume: isQuestion(stored.at(-1)) })
  const { messages, sendMessage, setMessages, resumeStream, status } = chat
  const isBusy = status === 'submitted' || status === 'streaming'
  // Until React runs, the browser would send the form itself, and the question would be lost.
  const isLoaded = useSyncExternalStore(
    never,
    () => true,
    () => false,
  )

  // The question keeps its id, and is asked once.
  useEffect(() => {
    if (unsent !== undefined) void sendMessage()
  }, [unsent, sendMessage])

  // Another page asked something.
  useEffect(() => {
    if (status !== 'ready' || stored.length <= messages.length) return
    setMessages(stored)
    if (isQuestion(stored.at(-1))) void resumeStream()
  }, [stored, messages.length, status, setMessages, resumeStream])

  // The AI SDK reads an answer again only in a new chat.
  useEffect(() => {
    if (status !== 'error') return
    const last = messages.at(-1)
    const isUnsent = isQuestion(last) && !stored.some((message) => message.id === last.id)
    const timer = setTimeout(onLost, RETRY_MS, isUnsent ? last : undefined)
    return () => clearTimeout(timer)
  }, [status, messages, stored, onLost])

  function submit(event) {
    event.preventDefault()
    if (text.trim() === '' || isBusy) return
    void sendMessage({ text: text.trim() })
    setText('')
  }

  return (
    <main>
      <h1>Resumable chat</h1>
      <p role="status">{isLoaded ? statusText(status) : 'Loading …'}</p>
      <ol aria-label="Messages">
        {messages.map((message) => (
          <li key={message.id}>{textOf(message)}</li>
        ))}
      </ol>
      <form onSubmit={submit}>
        <input
          aria-label="Question"
          value={text}
          disabled={!isLoaded}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" disabled={!isLoaded || isBusy}>
          Ask
        </button>
      </form>
    </main>
  )
}

function statusText(status) {
  if (status === 'error') return 'Trying again …'
  return status === 'ready' ? 'Ready' : 'Writing …'
}

function isQuestion(message) {
  return message?.role === 'user'
}

function textOf({ parts }) {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
