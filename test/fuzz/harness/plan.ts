import type { Orders } from './messages.ts'
import type { AnyTarget } from './target.ts'

const SHARE = 10

/** How many inputs each decoder gets: all together no fewer than asked for. */
export function planOf(targets: readonly AnyTarget[], inputs: number): Orders['plan'] {
  const shares = targets.map(({ share = SHARE }) => share)
  const all = shares.reduce((sum, share) => sum + share, 0)
  return targets.map(({ name }, i) => ({ target: name, inputs: Math.ceil((inputs * shares[i]!) / all) }))
}
