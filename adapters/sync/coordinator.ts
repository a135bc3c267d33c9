import { contendForLock } from '../../src/runtime/page-lock.ts'

/** A candidate for work that only one should do. */
interface Candidate {
  /**
   * Receives true when the work is this candidate's, and false when it no longer is. Without it, only messages
   * are exchanged.
   */
  readonly onElected?: ((isElected: boolean) => void) | undefined
  /** Called with each message of another candidate. Messages are hints: they may come late or get lost. */
  readonly onMessage: (message: unknown) => void
}

/** A candidate's part in an election. */
export interface Membership {
  /** Sends a message to all other members, a value that can be cloned. Does nothing after `leave`. */
  post(message: unknown): void
  /** Withdraws for good. The candidate receives no further calls. */
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

/** Elects among the candidates of this thread, for all copies of this module: the first one of them. */
export const coordinateInThread: Coordinator = (name, { onElected, onMessage }) => {
  const holder = globalThis as { [REGISTRY]?: Map<string, ThreadMember[]> | undefined }
  holder[REGISTRY] ??= new Map()
  const byName = holder[REGISTRY]
  const members = byName.get(name) ?? []
  byName.set(name, members)
  const isMember = () => members.includes(self)
  const self: ThreadMember = {
    elect: () => queueMicrotask(() => isMember() && onElected?.(true)),
    receive: (message) => queueMicrotask(() => isMember() && onMessage(message)),
  }
  members.push(self)
  if (members[0] === self) self.elect()
  return {
    post: (message) => {
      if (isMember()) for (const other of members) if (other !== self) other.receive(message)
    },
    leave: () => {
      if (!isMember()) return
      const wasElected = members[0] === self
      members.splice(members.indexOf(self), 1)
      if (wasElected) members[0]?.elect()
      if (members.length === 0) byName.delete(name)
    },
  }
}

interface ThreadMember {
  readonly elect: () => void
  readonly receive: (message: unknown) => void
}

/** Elects among the tabs and workers of an origin by a Web Lock. */
function coordinateTabs(locks: LockManager, name: string, { onElected, onMessage }: Candidate): Membership {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => onMessage(data)
  let hasLeft = false
  const withdraw = onElected && contendForLock(locks, name, (isElected) => hasLeft || onElected(isElected))
  return {
    post: (message) => {
      try {
        channel.postMessage(message)
      } catch {
        // The channel is closed, or the page is going away.
      }
    },
    leave: () => {
      hasLeft = true
      withdraw?.()
      channel.close()
    },
  }
}
