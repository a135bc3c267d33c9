import type { VirtualClock } from '../../../adapters/testing/index.ts'

/** Lets virtual time pass in steps of this length until a piece of work has settled, in milliseconds. */
const STEP_MS = 20

/** Settles as `work` does, which may wait for virtual time. */
export async function whileAdvancing<Result>(time: VirtualClock, work: Promise<Result>): Promise<Result> {
  let isSettled = false
  const end = () => {
    isSettled = true
  }
  work.then(end, end)
  await time.settle()
  while (!isSettled) await time.advance(STEP_MS)
  return work
}
