const sources: EventSource[] = []
const received: { type: string; id: string; data: string }[] = []

/** Records the events of an `EventSource`, across reconnections. */
export function listen(url: string): void {
  const source = new EventSource(url)
  sources.push(source)
  for (const type of ['batch', 'error', 'message']) {
    // Events of the connection, unlike those of the server, have no data.
    source.addEventListener(type, (event) => {
      if (!(event instanceof MessageEvent)) return
      received.push({ type, id: event.lastEventId, data: event.data })
      if (event.data === '[DONE]') source.close()
    })
  }
}

/** The recorded events, without pings. */
export function events(): readonly { type: string; id: string; data: string }[] {
  return received
}

export function states(): number[] {
  return sources.map(({ readyState }) => readyState)
}
