import { PassThrough } from 'node:stream'

/** A terminal of 100 columns, and all that was drawn on it so far. */
export function fakeTerminal(): { readonly terminal: NodeJS.WriteStream; drawn(): string } {
  const stream = new PassThrough()
  let text = ''
  stream.on('data', (piece) => {
    text += piece
  })
  const terminal = Object.assign(stream, { isTTY: true, columns: 100 }) as unknown as NodeJS.WriteStream
  return { terminal, drawn: () => text }
}
