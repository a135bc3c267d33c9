/** One Server-Sent Event. */
export interface ServerEvent {
  /** `message` if the stream names none. */
  readonly event: string
  readonly data: string
}

/** Parses Server-Sent Events from chunks of text. */
export class EventParser {
  #line = ''
  #endsInReturn = false
  #event = ''
  #data: string[] = []

  /** Returns the events that end in this chunk. */
  push(chunk: string): ServerEvent[] {
    const events: ServerEvent[] = []
    // The second half of a line break whose first half ended the chunk before.
    const text = this.#endsInReturn && chunk.startsWith('\n') ? chunk.slice(1) : chunk
    if (chunk !== '') this.#endsInReturn = chunk.endsWith('\r')
    let start = 0
    // Searches only the new text: a line of a megabyte arrives in many chunks.
    for (const { index, 0: lineBreak } of text.matchAll(/\r\n|\r|\n/g)) {
      const line = this.#line + text.slice(start, index)
      this.#line = ''
      start = index + lineBreak.length
      if (line === '') this.#dispatch(events)
      else this.#field(line)
    }
    this.#line += text.slice(start)
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
