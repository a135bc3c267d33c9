import { isBrokenPipe } from './errors.ts'

/**
 * Returns a function that writes lines to standard output. Ignores that the reader of a pipe is gone: it must
 * not end a server. Calls `onFailure` with the first other error, such as of a full disk.
 */
export function linePrinter(
  stream: NodeJS.WritableStream,
  onFailure: (error: Error) => void,
): (line: string) => void {
  let hasFailed = false
  const fail = (error: Error) => {
    if (hasFailed || isBrokenPipe(error)) return
    hasFailed = true
    onFailure(error)
  }
  stream.on('error', fail)
  return (line) => {
    // Unlike `console.log`, this reports errors. A file throws them in some versions of Node.
    try {
      stream.write(`${line}\n`)
    } catch (error) {
      fail(error as Error)
    }
  }
}
