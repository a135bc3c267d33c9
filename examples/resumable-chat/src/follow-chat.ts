import { stream } from '@durable-streams/client'
import type { UIMessage } from 'ai'

/** How long to wait before the next attempt, in milliseconds. */
const RETRY_MS = 1_000

/**
 * Calls back with the messages of a chat that are finished, and again when there are more, which other pages
 * may add. Says whether the server cannot be reached.
 */
export async function followChat(
  id: string,
  signal: AbortSignal,
  onMessages: (messages: readonly UIMessage[]) => void,
  onOffline: (isOffline: boolean) => void,
): Promise<void> {
  while (!signal.aborted) {
    try {
      const loaded = await fetch(`/api/chat/${id}`, { signal })
      if (!loaded.ok) throw new Error(`status ${loaded.status}`)
      const messages: UIMessage[] = await loaded.json()
      onMessages([...messages])
      onOffline(false)
      const url = new URL(`/v1/stream/chats/${id}`, location.href).href
      const options = { live: 'sse', json: true, offset: '-1', warnOnHttp: false } as const
      const live = await stream<UIMessage>({ url, ...options, signal })
      live.closed.catch(() => {}) // The loop below throws the same error.
      let seen = 0
      for await (const message of live.jsonStream()) {
        seen++
        if (seen <= messages.length) continue
        messages.push(message)
        onMessages([...messages])
      }
    } catch {
      if (!signal.aborted) onOffline(true)
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS))
  }
}
