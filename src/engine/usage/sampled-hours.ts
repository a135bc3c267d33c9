import { isSampled, type Sampled, samplingState } from '../../core/usage/sampled.ts'
import type { StorageSession } from '../../storage/contract.ts'
import { idFrom, secureRandom } from '../ids.ts'
import { changeDocuments } from './change-documents.ts'
import { SAMPLED_KEY, usageJson } from './usage-documents.ts'

export interface Claimed {
  /** `due`: it is this engine's now. */
  readonly state: ReturnType<typeof samplingState>
  /** The latest hour that is seen to. */
  readonly last: number
}

const NEVER: Sampled = { hour: -1 }

/** The document by which the engines of a storage agree on who looks at the basins in an hour. */
export class SampledHours {
  readonly #session: StorageSession
  readonly #engineId: string = idFrom(secureRandom)

  constructor(session: StorageSession) {
    this.#session = session
  }

  /** Says, or says again, that this engine is at the hour of `now` (seconds), unless that is done or another's. */
  async claim(now: number, hour: number): Promise<Claimed> {
    let claimed: Claimed = { state: 'due', last: NEVER.hour }
    await this.#change((sampled) => {
      const state = samplingState(sampled, this.#engineId, now)
      claimed = { state, last: sampled.hour }
      return state === 'due' ? { ...sampled, claim: { hour, by: this.#engineId, at: now } } : undefined
    })
    return claimed
  }

  /** All basins were looked at in an hour. */
  async finish(hour: number): Promise<void> {
    await this.#change((sampled) => {
      if (isSampled(sampled.hour, hour)) return undefined
      const { claim } = sampled
      return claim === undefined || claim.hour === hour ? { hour } : { hour, claim }
    })
  }

  async #change(change: (sampled: Sampled) => Sampled | undefined): Promise<void> {
    await changeDocuments(this.#session, 'settings', [SAMPLED_KEY], (values) => {
      const changed = change((values.get(SAMPLED_KEY) as unknown as Sampled | undefined) ?? NEVER)
      return new Map(changed === undefined ? [] : [[SAMPLED_KEY, usageJson(changed)]])
    })
  }
}
