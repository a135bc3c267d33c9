const received: { type: string; id: string; data: string }[] = []

/** Records the events of an `EventSource`, across reconnections. */
export function listen(url: string): void {
  const source = new EventSource(url)
  for (const type of ['batch', 'error']) {
    // Events of the connection, unlike those of the server, have no data.
    source.addEventListener(type, (event) => {
      if (!(event instanceof MessageEvent)) return
      received.push({ type, id: event.lastEventId, data: event.data })
    })
  }
}

/** The recorded events, without pings. */
export function events(): readonly { type: string; id: string; data: string }[] {
  return received
}
