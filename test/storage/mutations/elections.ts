import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { wrapped } from '../wrapped-storage.ts'
import type { Mutation } from './mutation.ts'

/** The sessions that contend for the background work, in order. */
interface Election {
  /** The first one is elected. */
  readonly candidates: ((isElected: boolean) => void)[]
  elect(): void
}

/** A storage that elects one session after another, with the given parts replaced. */
export function electing(
  change: (
    election: Election,
    leave: (onElected: (isElected: boolean) => void) => void,
  ) => Partial<{
    /** Replaces the function that withdraws. */
    end: (onElected: (isElected: boolean) => void) => void
    close: (requested: readonly ((isElected: boolean) => void)[]) => void
  }> = () => ({}),
): Storage {
  const candidates: ((isElected: boolean) => void)[] = []
  const election = { candidates, elect: () => candidates[0]?.(true) }
  const leave = (onElected: (isElected: boolean) => void) => {
    const index = candidates.indexOf(onElected)
    if (index < 0) return
    candidates.splice(index, 1)
    if (index === 0) election.elect()
  }
  const { end = leave, close = (requested) => requested.forEach(leave) } = change(election, leave)
  return wrapped((session): Partial<StorageSession> => {
    const requested: ((isElected: boolean) => void)[] = []
    return {
      electForBackgroundWork(onElected) {
        requested.push(onElected)
        if (candidates.push(onElected) === 1) election.elect()
        return () => end(onElected)
      },
      close() {
        close(requested)
        return session.close()
      },
    }
  })
}

const SUCCEEDED = 'elections: a session is elected for background work once those elected before withdraw'

export const electionMutations: readonly Mutation[] = [
  {
    breaks: 'elections: no session is elected',
    noticedBy: [SUCCEEDED, 'elections: closing a session withdraws it'],
    make: () => wrapped(() => ({ electForBackgroundWork: () => () => {} })),
  },
  {
    breaks: 'elections: no session succeeds one that withdraws',
    noticedBy: [SUCCEEDED],
    make: () => electing(() => ({ end: () => {} })),
  },
  {
    breaks: 'elections: closing does not withdraw',
    noticedBy: ['elections: closing a session withdraws it'],
    make: () => electing(() => ({ close: () => {} })),
  },
  {
    breaks: 'elections: withdrawing before being elected has no effect',
    noticedBy: [
      'elections: a session that withdrew is not elected again, and withdrawing twice does nothing',
    ],
    make: () =>
      electing(({ candidates }, leave) => ({
        end: (onElected) => {
          if (candidates[0] === onElected) leave(onElected)
        },
      })),
  },
]
