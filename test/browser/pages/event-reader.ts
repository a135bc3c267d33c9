/** Reads Server-Sent Events from a response one by one. Supports only the syntax that headwater writes. */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<string>
  #text = ''

  constructor(response: Response) {
    this.#reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  }

  /** Resolves to the lines of the next event. */
  async next(): Promise<string[]> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const lines = this.#text.slice(0, end).split('\n')
        this.#text = this.#text.slice(end + 2)
        return lines
      }
      const { done, value } = await this.#reader.read()
      if (done) throw new Error('no more events')
      this.#text += value
    }
  }

  cancel(): Promise<void> {
    return this.#reader.cancel()
  }
}
