import { useChat } from '@ai-sdk/react'
import { createDurableChatTransport } from '@durable-streams/aisdk-transport'
import type { UIMessage } from 'ai'
import { type FormEvent, useEffect, useRef, useState } from 'react'

/** How long to wait after a failure, in milliseconds. */
const RETRY_MS = 1_000

const transport = createDurableChatTransport({ api: new URL('/api/chat', location.href).href })

interface ChatProps {
  readonly id: string
  /** The finished messages. */
  readonly stored: readonly UIMessage[]
  /** A question that did not reach the server. It is sent again: its id makes sure that it is asked once. */
  readonly unsent: UIMessage | undefined
  /** Called some time after the connection was lost. The AI SDK reads an answer again only in a new chat. */
  readonly onLost: (unsent: UIMessage | undefined) => void
}

/** A chat whose answers come from streams: a page that is opened while one is written shows it from the start. */
export function Chat({ id, stored, unsent, onLost }: ChatProps) {
  const [text, setText] = useState('')
  const [initial] = useState(() => (unsent === undefined ? [...stored] : [...stored, unsent]))
  const chat = useChat({ id, messages: initial, transport, resume: isQuestion(stored.at(-1)) })
  const { messages, sendMessage, setMessages, resumeStream, status } = chat
  const list = useRef<HTMLOListElement>(null)
  const isBusy = status === 'submitted' || status === 'streaming'

  useEffect(() => {
    if (unsent !== undefined) void sendMessage()
  }, [unsent, sendMessage])

  // Another page asked something.
  useEffect(() => {
    if (status !== 'ready' || stored.length <= messages.length) return
    setMessages([...stored])
    if (isQuestion(stored.at(-1))) void resumeStream()
  }, [stored, messages.length, status, setMessages, resumeStream])

  useEffect(() => {
    if (status !== 'error') return
    const last = messages.at(-1)
    const isUnsent = isQuestion(last) && !stored.some((message) => message.id === last?.id)
    const timer = setTimeout(onLost, RETRY_MS, isUnsent ? last : undefined)
    return () => clearTimeout(timer)
  }, [status, messages, stored, onLost])

  const shown = messages.map(textOf).join('')
  // biome-ignore lint/correctness/useExhaustiveDependencies: scrolls when the text has grown
  useEffect(() => {
    list.current?.scrollTo({ top: list.current.scrollHeight })
  }, [shown])

  function submit(event: FormEvent) {
    event.preventDefault()
    if (text.trim() === '' || isBusy) return
    void sendMessage({ text: text.trim() })
    setText('')
  }

  return (
    <>
      <header>
        <h1>Resumable chat</h1>
        <span role="status">{isBusy ? 'Writing …' : 'Ready'}</span>
      </header>
      <ol ref={list} aria-label="Messages">
        {messages.map((message, i) => (
          <li
            key={message.id}
            className={`${message.role} ${isBusy && i === messages.length - 1 ? 'writing' : ''}`}
          >
            {textOf(message)}
          </li>
        ))}
      </ol>
      {status === 'error' && <p role="alert">The server cannot be reached. Trying again …</p>}
      <form onSubmit={submit}>
        <input
          aria-label="Question"
          placeholder="Ask something"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <button type="submit" disabled={isBusy}>
          Ask
        </button>
      </form>
    </>
  )
}

function isQuestion(message: UIMessage | undefined): boolean {
  return message?.role === 'user'
}

function textOf({ parts }: UIMessage): string {
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}
