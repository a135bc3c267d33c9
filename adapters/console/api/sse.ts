/** One Server-Sent Event. */
export interface ServerEvent {
  /** `message` if the stream names none. */
  readonly event: string
  readonly data: string
}

/** Parses Server-Sent Events from chunks of text. */
export class EventParser {
  #rest = ''
  #event = ''
  #data: string[] = []

  /** Returns the events that end in this chunk. */
  push(chunk: string): ServerEvent[] {
    const events: ServerEvent[] = []
    // A carriage return at the end may be the first half of a line break.
    const text = this.#rest + chunk
    const end = text.endsWith('\r') ? text.length - 1 : text.length
    const lines = text.slice(0, end).split(/\r\n|\r|\n/)
    this.#rest = lines.pop()! + text.slice(end)
    for (const line of lines) {
      if (line === '') this.#dispatch(events)
      else this.#field(line)
    }
    return events
  }

  #dispatch(events: ServerEvent[]): void {
    if (this.#data.length > 0) events.push({ event: this.#event || 'message', data: this.#data.join('\n') })
    this.#event = ''
    this.#data = []
  }

  #field(line: string): void {
    const colon = line.indexOf(':')
    const name = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? '' : line.slice(colon + 1).replace(/^ /, '')
    if (name === 'event') this.#event = value
    else if (name === 'data') this.#data.push(value)
  }
}
