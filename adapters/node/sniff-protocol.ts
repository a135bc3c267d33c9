import type { Socket } from 'node:net'

// RFC 9113, 3.4. It was chosen so that no HTTP/1.1 server takes it for a request.
const HTTP2_PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

/**
 * Tells HTTP/2 with prior knowledge from HTTP/1.1 by the first bytes, however they are split, and calls back with all bytes read so
 * far. A connection that does not show in time which one it speaks is destroyed.
 */
export function sniffProtocol(
  socket: Socket,
  timeoutMs: number,
  decided: (protocol: 'http/1.1' | 'h2', received: Buffer) => void,
): void {
  let received: Buffer = Buffer.alloc(0)

  const timer = setTimeout(() => socket.destroy(), timeoutMs)
  const stop = () => {
    clearTimeout(timer)
    socket.off('readable', onReadable)
    socket.off('end', onEnd)
    socket.off('close', stop)
  }
  const onReadable = () => {
    // Exactly what is there: a read beyond it would make a socket that has half-closed emit `end` before its bytes are used.
    const chunk: Buffer | null = socket.read(socket.readableLength)
    if (chunk) received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    // Nothing to read means the end. This read makes the socket say so.
    else socket.read()
    const length = Math.min(received.length, HTTP2_PREFACE.length)
    if (length === 0) return
    const looksLikePreface = received.compare(HTTP2_PREFACE, 0, length, 0, length) === 0
    if (looksLikePreface && length < HTTP2_PREFACE.length) return
    stop()
    decided(looksLikePreface ? 'h2' : 'http/1.1', received)
  }
  // A client that says it has nothing more to send, but said too little.
  const onEnd = () => socket.destroy()

  socket.on('readable', onReadable).once('end', onEnd).once('close', stop)
}
