import { contendForLock } from '../../src/runtime/page-lock.ts'

/** A candidate for work that only one should do. */
interface Candidate {
  /** Called with true when the work is this candidate's, and with false when it no longer is. */
  readonly onElected: (isElected: boolean) => void
  /** Called with each message of another candidate. Messages are hints: they may come late or get lost. */
  readonly onMessage: (message: unknown) => void
}

/** A candidate's part in an election. */
export interface Membership {
  /** Stands for election, or withdraws. A member that does not stand still receives messages. */
  stand(isStanding: boolean): void
  /** Sends a message to all other members, a value that can be cloned. Does nothing after `leave`. */
  post(message: unknown): void
  /** Withdraws for good. The candidate receives no further calls. */
  leave(): void
}

/**
 * Elects one of the candidates with a name at a time, where they can know of each other. A candidate stands
 * from the beginning unless `stands` is false. Nothing may depend on there being only one: candidates in
 * other processes are not known, and a paused one may still believe that it is elected. Never throws, and
 * calls back in a later microtask.
 */
export type Coordinator = (name: string, candidate: Candidate, stands?: boolean) => Membership

/** Elects among the tabs and workers of an origin in a browser, and elsewhere among those of a thread. */
export const coordinate: Coordinator = (name, candidate, stands = true) => {
  const { locks } = globalThis.navigator ?? {}
  // Node has locks too, but no tabs.
  const isBrowser = 'document' in globalThis || 'WorkerGlobalScope' in globalThis
  if (!isBrowser || locks === undefined || typeof BroadcastChannel !== 'function') {
    return coordinateInThread(name, candidate, stands)
  }
  return coordinateTabs(locks, name, candidate, stands)
}

const REGISTRY = Symbol.for('headwater.sync.candidates')

interface ThreadMember extends Candidate {
  stands: boolean
  isElected: boolean
}

/** Elects among the candidates of this thread, for all copies of this module: the one that stands longest. */
export const coordinateInThread: Coordinator = (name, { onElected, onMessage }, stands = true) => {
  const holder = globalThis as { [REGISTRY]?: Map<string, ThreadMember[]> | undefined }
  holder[REGISTRY] ??= new Map()
  const byName = holder[REGISTRY]
  const members = byName.get(name) ?? []
  byName.set(name, members)
  let hasLeft = false
  const self: ThreadMember = {
    stands,
    isElected: false,
    onElected: (isElected) => queueMicrotask(() => hasLeft || onElected(isElected)),
    onMessage: (message) => queueMicrotask(() => hasLeft || onMessage(message)),
  }
  const elect = () => {
    const elected = members.find((member) => member.isElected) ?? members.find((member) => member.stands)
    if (elected === undefined || elected.isElected) return
    elected.isElected = true
    elected.onElected(true)
  }
  const withdraw = () => {
    self.stands = false
    if (!self.isElected) return
    self.isElected = false
    self.onElected(false)
  }
  members.push(self)
  elect()
  return {
    stand: (isStanding) => {
      if (isStanding) self.stands = true
      else withdraw()
      elect()
    },
    post: (message) => {
      if (hasLeft) return
      for (const other of members) if (other !== self) other.onMessage(message)
    },
    leave: () => {
      if (hasLeft) return
      hasLeft = true
      withdraw()
      members.splice(members.indexOf(self), 1)
      elect()
      if (members.length === 0) byName.delete(name)
    },
  }
}

/** Elects among the tabs and workers of an origin by a Web Lock. */
function coordinateTabs(
  locks: LockManager,
  name: string,
  { onElected, onMessage }: Candidate,
  stands: boolean,
): Membership {
  const channel = new BroadcastChannel(name)
  channel.onmessage = ({ data }) => onMessage(data)
  let hasLeft = false
  let withdraw: (() => void) | undefined
  const stand = (isStanding: boolean) => {
    if (isStanding) withdraw ??= contendForLock(locks, name, (isElected) => hasLeft || onElected(isElected))
    else {
      withdraw?.()
      withdraw = undefined
    }
  }
  if (stands) stand(true)
  return {
    stand,
    post: (message) => {
      try {
        channel.postMessage(message)
      } catch {
        // The channel is closed, or the page is going away.
      }
    },
    leave: () => {
      hasLeft = true
      stand(false)
      channel.close()
    },
  }
}
