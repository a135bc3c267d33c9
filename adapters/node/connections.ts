import type { ServerHttp2Session } from 'node:http2'
import type { Socket } from 'node:net'

/** What is open at the moment. */
export interface ConnectionCounts {
  readonly connections: number
  readonly http2Sessions: number
  /** Requests whose response is not complete. */
  readonly requests: number
}

/** Everything a server has open, so that it can be counted and closed. */
export class Connections {
  readonly #sockets = new Set<Socket>()
  /** Those that have not shown their protocol yet: nobody waits for them at the end. */
  readonly #silent = new Set<Socket>()
  readonly #sessions = new Set<ServerHttp2Session>()
  readonly #requestsOn = new WeakMap<object, number>()
  #requests = 0
  #draining = false
  #onEmpty: (() => void) | undefined

  get counts(): ConnectionCounts {
    return { connections: this.#sockets.size, http2Sessions: this.#sessions.size, requests: this.#requests }
  }

  get draining(): boolean {
    return this.#draining
  }

  accepted(socket: Socket): void {
    this.#sockets.add(socket)
    socket.once('close', () => {
      this.#sockets.delete(socket)
      this.#checkEmpty()
    })
  }

  /** Under TLS, the decrypted socket, which lies above the accepted one. The function returned says that it has spoken. */
  silent(socket: Socket): () => void {
    const spoke = () => {
      this.#silent.delete(socket)
      socket.off('close', spoke)
    }
    this.#silent.add(socket)
    socket.once('close', spoke)
    if (this.#draining) socket.destroy()
    return spoke
  }

  sessionOpened(session: ServerHttp2Session): void {
    this.#sessions.add(session)
    session.once('close', () => {
      this.#sessions.delete(session)
      this.#checkEmpty()
    })
    if (this.#draining) session.close()
  }

  /** Returns how many requests the HTTP/1.1 connection has now, or the HTTP/2 stream. */
  requestStarted(carrier: object): number {
    const count = (this.#requestsOn.get(carrier) ?? 0) + 1
    this.#requestsOn.set(carrier, count)
    this.#requests++
    return count
  }

  requestEnded(carrier: object): void {
    this.#requestsOn.set(carrier, (this.#requestsOn.get(carrier) ?? 1) - 1)
    this.#requests--
    this.#checkEmpty()
  }

  /**
   * Tells HTTP/2 clients to go away once their streams are done, and drops the connections that carry nothing. Resolves when nothing
   * is open any more, provided that nothing new is accepted.
   */
  drain(): Promise<void> {
    this.#draining = true
    for (const socket of this.#silent) socket.destroy()
    for (const session of this.#sessions) session.close()
    return new Promise((resolve) => {
      this.#onEmpty = resolve
      this.#checkEmpty()
    })
  }

  destroyAll(): void {
    for (const session of this.#sessions) session.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  #checkEmpty(): void {
    if (this.#sockets.size + this.#sessions.size + this.#requests === 0) this.#onEmpty?.()
  }
}
