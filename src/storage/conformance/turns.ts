import type { StorageSession } from '../contract.ts'
import { ok } from './assert.ts'
import type { ConformanceCase, Harness } from './harness.ts'

/** For storages that give turns. Where there are none it is always everybody's. */
export const turnCases: readonly ConformanceCase[] = [
  {
    title: 'whoever asks for the turn of background work has it, once those who had it gave it up',
    async run(harness) {
      const turns = await askForTurns(harness, 3)
      for (const turn of turns) {
        await turn.isOurs()
        turn.giveUp()
      }
    },
  },
  {
    title: 'a session that closes gives its turn up',
    async run(harness) {
      for (const turn of await askForTurns(harness, 3)) {
        await turn.isOurs()
        await turn.session.close()
      }
    },
  },
  {
    title: 'a turn that was given up does not come back, and is given up only once',
    async run(harness) {
      const [given, waiting, last] = await askForTurns(harness, 3)
      await given?.isOurs()
      // That of the second may not have come yet.
      for (const turn of [waiting, given, waiting, given]) turn?.giveUp()
      await last?.isOurs()
      await last?.session.close()
      for (const turn of [given, waiting]) {
        turn?.giveUp()
        await turn?.session.close()
        ok(turn?.cameBack !== true, 'onTurn(true) was called after the turn was given up')
      }
    },
  },
]

/** Each in a session of its own. None where there are no turns, one where only one session may be open. */
async function askForTurns(harness: Harness, count: number): Promise<Turn[]> {
  const turns: Turn[] = []
  for (let i = 0; i < (harness.storage.manifest.shared ? count : 1); i++) {
    const session = await harness.open()
    if (session.backgroundTurn === undefined) return []
    turns.push(new Turn(session, harness.options.notificationMsMax ?? 5000))
  }
  return turns
}

/** A turn that was asked for. */
class Turn {
  readonly session: StorageSession
  readonly #timeoutMs: number
  readonly #end: () => void
  #isOurs = false
  #isGivenUp = false
  #cameBack = false
  #onOurs: () => void = () => {}

  constructor(session: StorageSession, timeoutMs: number) {
    this.session = session
    this.#timeoutMs = timeoutMs
    this.#end = session.backgroundTurn!((isOurs) => {
      this.#isOurs = isOurs
      this.#cameBack ||= isOurs && this.#isGivenUp
      if (isOurs) this.#onOurs()
    })
  }

  /** Whether it was told to be ours after it was given up. */
  get cameBack(): boolean {
    return this.#cameBack
  }

  /** Waits until it is. */
  isOurs(): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new Error(`onTurn(true) was not called within ${this.#timeoutMs} ms`))
      const timer = setTimeout(late, this.#timeoutMs)
      this.#onOurs = () => {
        clearTimeout(timer)
        resolve()
      }
      if (this.#isOurs) this.#onOurs()
    })
  }

  giveUp(): void {
    this.#isGivenUp = true
    this.#end()
  }
}
