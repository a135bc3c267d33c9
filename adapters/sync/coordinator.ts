import { onBrowserPause } from './page-events.ts'

/** A candidate for work that only one should do. */
interface Candidate {
  /** Called with true when the work is this candidate's, and with false when it no longer is. */
  readonly onElected: (isElected: boolean) => void
  /** Called with each message of another candidate. Messages are hints: they may come late or get lost. */
  readonly onMessage: (message: unknown) => void
}

/** A candidate's part in an election. */
export interface Membership {
  /** Sends a message to all other candidates, a value that can be cloned. Does nothing after `leave`. */
  post(message: unknown): void
  /** Withdraws the candidate permanently. It receives no further calls. */
  leave(): void
}

/**
 * Elects one of the candidates with a name at a time, where they can know of each other. Nothing may depend
 * on there being only one: candidates in other processes are not known, and a paused one may still believe
 * that it is elected. Never throws, and calls back in a later microtask.
 */
export type Coordinator = (name: string, candidate: Candidate) => Membership

/** Elects among the tabs and workers of an origin in a browser, and elsewhere among those of a thread. */
export const coordinate: Coordinator = (name, candidate) => {
  const { locks } = globalThis.navigator ?? {}
  // Node has locks too, but no tabs.
  const isBrowser = 'document' in globalThis || 'WorkerGlobalScope' in globalThis
  if (!isBrowser || locks === undefined || typeof BroadcastChannel !== 'function') {
    return coordinateInThread(name, candidate)
  }
  return coordinateTabs(locks, name, candidate)
}

const REGISTRY = Symbol.for('headwater.sync.candidates')

/** The candidates of this thread by name, for all copies of this module. The first of a name is elected. */
function candidates(): Map<string, Candidate[]> {
  const holder = globalThis as { [REGISTRY]?: Map<string, Candidate[]> | undefined }
  holder[REGISTRY] ??= new Map()
  return holder[REGISTRY]
}

/** Elects among the candidates of this thread. */
export const coordinateInThread: Coordinator = (name, { onElected, onMessage }) => {
  const all = candidates()
  const others = all.get(name) ?? []
  all.set(name, others)
  let hasLeft = false
  const self: Candidate = {
    onElected: (isElected) => queueMicrotask(() => hasLeft || onElected(isElected)),
    onMessage: (message) => queueMicrotask(() => hasLeft || onMessage(message)),
  }
  others.push(self)
  if (others[0] === self) self.onElected(true)
  return {
    post: (message) => {
      if (hasLeft) return
      for (const other of others) if (other !== self) other.onMessage(message)
    },
    leave: () => {
      if (hasLeft) return
      hasLeft = true
      const wasElected = others[0] === self
      others.splice(others.indexOf(self), 1)
      if (others.length === 0) all.delete(name)
      else if (wasElected) others[0]!.onElected(true)
    },
  }
}

/**
 * Elects among the tabs and workers of an origin: the holder of a Web Lock. A page that is frozen or enters
 * the back/forward cache releases it, because it would keep the work from pages that run.
 */
function coordinateTabs(locks: LockManager, name: string, { onElected, onMessage }: Candidate): Membership {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => onMessage(data)
  let release: (() => void) | undefined
  const request = () => {
    release ??= holdLock(locks, name, onElected)
  }
  const pause = () => {
    if (release === undefined) return
    release()
    release = undefined
    onElected(false)
  }
  request()
  const stopListening = onBrowserPause(pause, request)
  return {
    post: (message) => {
      try {
        channel.postMessage(message)
      } catch {
        // The channel is closed, or the page is going away.
      }
    },
    leave: () => {
      stopListening()
      release?.()
      channel.close()
    },
  }
}

/** Requests the lock and holds it until the returned function is called. */
function holdLock(locks: LockManager, name: string, onElected: (isElected: boolean) => void): () => void {
  const request = new AbortController()
  let release: () => void = () => {}
  const hold = () => {
    // The lock can be granted before the abort takes effect.
    if (request.signal.aborted) return
    onElected(true)
    return new Promise<void>((resolve) => {
      release = resolve
    })
  }
  locks.request(name, { signal: request.signal }, hold).catch(() => {
    // Pages that must not use locks do the work without.
    if (!request.signal.aborted) onElected(true)
  })
  return () => {
    request.abort()
    release()
  }
}
