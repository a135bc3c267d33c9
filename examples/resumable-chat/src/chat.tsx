import { useChat } from '@ai-sdk/react'
import { createDurableChatTransport } from '@durable-streams/aisdk-transport'
import type { UIMessage } from 'ai'
import { type SubmitEvent, useEffect, useRef, useState } from 'react'
import Markdown from 'react-markdown'

/** How long to wait after a failure, in milliseconds. */
const RETRY_MS = 1_000

const transport = createDurableChatTransport({ api: new URL('/api/chat', location.href).href })

interface ChatProps {
  readonly id: string
  /** The finished messages. */
  readonly stored: readonly UIMessage[]
  readonly isOffline: boolean
  /** A question that did not reach the server. It is sent again: its id makes sure that it is asked once. */
  readonly unsent: UIMessage | undefined
  /** Called some time after the connection was lost. The AI SDK reads an answer again only in a new chat. */
  readonly onLost: (unsent: UIMessage | undefined) => void
}

/** A chat whose answers come from streams: a page that opens while one is written shows it from the start. */
export function Chat({ id, stored, isOffline, unsent, onLost }: ChatProps) {
  const [initial] = useState(() => (unsent === undefined ? [...stored] : [...stored, unsent]))
  // Only at the beginning: it must not take the place of a question that is being sent.
  const [resume] = useState(() => unsent === undefined && isQuestion(stored.at(-1)))
  const chat = useChat({ id, messages: initial, transport, resume })
  const { messages, sendMessage, setMessages, resumeStream, status } = chat
  const list = useRef<HTMLOListElement>(null)
  const isBusy = status === 'submitted' || status === 'streaming'

  useEffect(() => {
    if (unsent !== undefined) void sendMessage()
  }, [unsent, sendMessage])

  // Another page asked something, perhaps at the same time.
  const isOther = stored.some(({ id }, i) => id !== messages[i]?.id)
  useEffect(() => {
    if (status !== 'ready' || stored.length < messages.length || !isOther) return
    setMessages([...stored])
    if (isQuestion(stored.at(-1))) void resumeStream()
  }, [stored, messages.length, isOther, status, setMessages, resumeStream])

  // What was shown stays until the server can be reached again.
  useEffect(() => {
    if (status !== 'error' || isOffline) return
    const last = messages.at(-1)
    const isUnsent = isQuestion(last) && !stored.some((message) => message.id === last?.id)
    const timer = setTimeout(onLost, RETRY_MS, isUnsent ? last : undefined)
    return () => clearTimeout(timer)
  }, [status, isOffline, messages, stored, onLost])

  const shown = messages.map(textOf).join('')
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when the text has grown
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight })
  }, [shown])

  function submit(event: SubmitEvent<HTMLFormElement>) {
    event.preventDefault()
    const form = event.currentTarget
    void sendMessage({ text: String(new FormData(form).get('question')).trim() })
    form.reset()
  }

  // The server writes the answer, so the server ends it: for all pages, and after a reload too.
  const stop = () => void fetch(`/api/chat/${id}/stream`, { method: 'DELETE' }).catch(() => {})

  return (
    <main>
      <header>
        <h1>Resumable chat</h1>
        <span role="status">
          {isOffline || status === 'error' ? 'Offline' : isBusy ? 'Writing …' : 'Ready'}
        </span>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: the keyboard scrolls the list */}
      <ol ref={list} aria-label="Messages" tabIndex={0}>
        {messages.map((message, i) => (
          <li
            key={message.id}
            className={`${message.role} ${isBusy && i === messages.length - 1 ? 'writing' : ''}`}
          >
            {message.role === 'user' ? textOf(message) : <Markdown>{textOf(message)}</Markdown>}
          </li>
        ))}
      </ol>
      <form onSubmit={submit} autoComplete="off">
        <input
          name="question"
          aria-label="Question"
          placeholder="Ask something"
          maxLength={4_000}
          pattern=".*\S.*"
          required
        />
        {isBusy ? (
          <button key="stop" type="button" onClick={stop} disabled={isOffline}>
            Stop
          </button>
        ) : (
          <button key="ask" type="submit" disabled={isOffline || status === 'error'}>
            Ask
          </button>
        )}
      </form>
    </main>
  )
}

function isQuestion(message: UIMessage | undefined): boolean {
  return message?.role === 'user'
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
