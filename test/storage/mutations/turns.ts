import type { Storage, StorageSession } from '../../../src/storage/contract.ts'
import { wrapped } from '../wrapped-storage.ts'
import type { Mutation } from './mutation.ts'

/** How sessions that have asked for the turn pass it on. */
interface Turns {
  /** The first has it. */
  readonly waiting: ((isOurs: boolean) => void)[]
  give(): void
}

/** A storage that gives turns to one session after another, but for what is replaced. */
export function takingTurns(
  change: (
    turns: Turns,
    leave: (onTurn: (isOurs: boolean) => void) => void,
  ) => Partial<{
    /** Of the function that gives a turn up. */
    end: (onTurn: (isOurs: boolean) => void) => void
    close: (asked: readonly ((isOurs: boolean) => void)[]) => void
  }> = () => ({}),
): Storage {
  const waiting: ((isOurs: boolean) => void)[] = []
  const turns = { waiting, give: () => waiting[0]?.(true) }
  const leave = (onTurn: (isOurs: boolean) => void) => {
    const index = waiting.indexOf(onTurn)
    if (index < 0) return
    waiting.splice(index, 1)
    if (index === 0) turns.give()
  }
  const { end = leave, close = (asked) => asked.forEach(leave) } = change(turns, leave)
  return wrapped((session): Partial<StorageSession> => {
    const asked: ((isOurs: boolean) => void)[] = []
    return {
      backgroundTurn(onTurn) {
        asked.push(onTurn)
        if (waiting.push(onTurn) === 1) turns.give()
        return () => end(onTurn)
      },
      close() {
        close(asked)
        return session.close()
      },
    }
  })
}

const PASSED_ON =
  'turns: whoever asks for the turn of background work has it, once those who had it gave it up'

export const turnMutations: readonly Mutation[] = [
  {
    breaks: 'turns: nobody is told',
    noticedBy: [PASSED_ON, 'turns: a session that closes gives its turn up'],
    make: () => wrapped(() => ({ backgroundTurn: () => () => {} })),
  },
  {
    breaks: 'turns: what is given up is not passed on',
    noticedBy: [PASSED_ON],
    make: () => takingTurns(() => ({ end: () => {} })),
  },
  {
    breaks: 'turns: closing keeps the turn',
    noticedBy: ['turns: a session that closes gives its turn up'],
    make: () => takingTurns(() => ({ close: () => {} })),
  },
  {
    breaks: 'turns: what was not there yet cannot be given up',
    noticedBy: ['turns: a turn that was given up does not come back, and is given up only once'],
    make: () =>
      takingTurns(({ waiting }, leave) => ({
        end: (onTurn) => {
          if (waiting[0] === onTurn) leave(onTurn)
        },
      })),
  },
]
