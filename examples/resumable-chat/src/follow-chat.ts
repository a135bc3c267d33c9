import { stream } from '@durable-streams/client'
import type { UIMessage } from 'ai'

/** How long to wait before the next attempt, in milliseconds. */
const RETRY_MS = 1_000

/**
 * Calls back with the messages of a chat that are finished, and again when there are more: this page may not
 * be the only one that shows it.
 */
export async function followChat(
  id: string,
  signal: AbortSignal,
  onMessages: (messages: readonly UIMessage[]) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const loaded = await fetch(`/api/chat/${id}`, { signal })
      if (!loaded.ok) throw new Error(`status ${loaded.status}`)
      const messages: UIMessage[] = await loaded.json()
      onMessages([...messages])
      const url = new URL(`/v1/stream/chats/${id}`, location.href).href
      const live = await stream<UIMessage>({ url, live: 'sse', json: true, offset: '-1', signal })
      let seen = 0
      for await (const message of live.jsonStream()) {
        seen++
        if (seen <= messages.length) continue
        messages.push(message)
        onMessages([...messages])
      }
    } catch (error) {
      if (signal.aborted) return
      console.warn('the chat cannot be followed', error)
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}
