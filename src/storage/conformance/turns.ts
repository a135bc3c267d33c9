import type { StorageSession } from '../contract.ts'
import { ok } from './assert.ts'
import type { ConformanceCase, Harness } from './harness.ts'

/** For storages that give turns. Where there are none it is always everybody's. */
export const turnCases: readonly ConformanceCase[] = [
  {
    title: 'whoever asks for the turn of background work has it, once those who had it gave it up',
    async run(harness) {
      for (let left = await askForTurns(harness, 3); left.length > 0; ) {
        const { given, others } = await nextOf(left)
        given.giveUp()
        left = others
      }
    },
  },
  {
    title: 'a session that closes gives its turn up',
    async run(harness) {
      for (let left = await askForTurns(harness, 3); left.length > 0; ) {
        const { given, others } = await nextOf(left)
        await given.session.close()
        left = others
      }
    },
  },
  {
    title: 'a turn that was given up does not come back, and is given up only once',
    async run(harness) {
      const turns = await askForTurns(harness, 3)
      if (turns.length === 0) return
      const { given, others } = await nextOf(turns)
      const [waiting, last] = others
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

/** That which is given next, whoever asked first, and the others. */
async function nextOf(turns: readonly Turn[]): Promise<{ given: Turn; others: Turn[] }> {
  const given = await Promise.race(turns.map((turn) => turn.isOurs().then(() => turn)))
  for (const turn of turns) turn.stopWaiting()
  return { given, others: turns.filter((turn) => turn !== given) }
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
      this.stopWaiting = () => clearTimeout(timer)
      this.#onOurs = () => {
        this.stopWaiting()
        resolve()
      }
      if (this.#isOurs) this.#onOurs()
    })
  }

  /** It need not come any more: no timer stays. */
  stopWaiting = (): void => {}

  giveUp(): void {
    this.#isGivenUp = true
    this.#end()
  }
}
