const sources: EventSource[] = []
const received: { type: string; id: string; data: string }[] = []

/** Begins to note what comes by `EventSource`, across reconnections. */
export function listen(url: string): void {
  const source = new EventSource(url)
  sources.push(source)
  for (const type of ['batch', 'error', 'message']) {
    // An event of the server's has data, one of the connection has none.
    source.addEventListener(type, (event) => {
      if (!(event instanceof MessageEvent)) return
      received.push({ type, id: event.lastEventId, data: event.data })
      if (event.data === '[DONE]') source.close()
    })
  }
}

/** What has come, pings aside. */
export function events(): readonly { type: string; id: string; data: string }[] {
  return received
}

export function states(): number[] {
  return sources.map(({ readyState }) => readyState)
}
