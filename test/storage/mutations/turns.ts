import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { wrapped } from '../wrapped-storage.ts'
import type { Mutation } from './mutation.ts'

/** The queue of sessions that requested the turn. */
interface Turns {
  /** The first one has the turn. */
  readonly waiting: ((isOurs: boolean) => void)[]
  grant(): void
}

/** A storage that grants the turn to one session after another, with the given parts replaced. */
export function takingTurns(
  change: (
    turns: Turns,
    leave: (onTurn: (isOurs: boolean) => void) => void,
  ) => Partial<{
    /** Replaces the function that gives up a turn. */
    end: (onTurn: (isOurs: boolean) => void) => void
    close: (requested: readonly ((isOurs: boolean) => void)[]) => void
  }> = () => ({}),
): Storage {
  const waiting: ((isOurs: boolean) => void)[] = []
  const turns = { waiting, grant: () => waiting[0]?.(true) }
  const leave = (onTurn: (isOurs: boolean) => void) => {
    const index = waiting.indexOf(onTurn)
    if (index < 0) return
    waiting.splice(index, 1)
    if (index === 0) turns.grant()
  }
  const { end = leave, close = (requested) => requested.forEach(leave) } = change(turns, leave)
  return wrapped((session): Partial<StorageSession> => {
    const requested: ((isOurs: boolean) => void)[] = []
    return {
      backgroundTurn(onTurn) {
        requested.push(onTurn)
        if (waiting.push(onTurn) === 1) turns.grant()
        return () => end(onTurn)
      },
      close() {
        close(requested)
        return session.close()
      },
    }
  })
}

const PASSED_ON = 'turns: a session gets the turn for background work once the earlier ones give it up'

export const turnMutations: readonly Mutation[] = [
  {
    breaks: 'turns: never granted',
    noticedBy: [PASSED_ON, 'turns: closing a session gives up its turn'],
    make: () => wrapped(() => ({ backgroundTurn: () => () => {} })),
  },
  {
    breaks: 'turns: not passed on when given up',
    noticedBy: [PASSED_ON],
    make: () => takingTurns(() => ({ end: () => {} })),
  },
  {
    breaks: 'turns: kept after close',
    noticedBy: ['turns: closing a session gives up its turn'],
    make: () => takingTurns(() => ({ close: () => {} })),
  },
  {
    breaks: 'turns: cannot be given up before they are granted',
    noticedBy: ['turns: a turn that was given up is not granted again, and giving it up twice does nothing'],
    make: () =>
      takingTurns(({ waiting }, leave) => ({
        end: (onTurn) => {
          if (waiting[0] === onTurn) leave(onTurn)
        },
      })),
  },
]
