import { type Scenario, SESSION_BYTES } from '../harness/scenario.ts'
import { bytesNow } from '../harness/snapshot.ts'
import type { World } from '../harness/world.ts'
import { type Follower, HANDLER_FOLLOWERS, LOCAL_FOLLOWERS, type StartFollower } from './follower.ts'

const WRITERS = 50
const BODY_BYTES = 100
const MIB = 1_048_576

/**
 * Many followers come, read part of what 50 writers append, and leave, each at a different position and in a
 * different way.
 */
function followers(
  name: string,
  starts: readonly StartFollower[],
  followerBytes: number,
  rounds: number,
): Scenario {
  async function round(world: World, { many }: { readonly many: number }, number: number): Promise<void> {
    const stream = world.stream()
    await world.hw.basin(stream.basinName).ensureStream(stream.name)
    const { seqNum: start } = await stream.checkTail()
    const bodies = Array.from({ length: WRITERS }, (_, writer) => `${writer} `.padEnd(BODY_BYTES))
    const join = (index: number) => starts[index % starts.length]!(world, start)
    const running: Promise<void>[] = []
    // Half of them wait at the tail; the others arrive during appends.
    for (let index = 0; index < many / 2; index++) {
      running.push(run(join(index), start, 1 + ((index + number) % WRITERS)))
    }
    await world.until(() => world.hw.stats().waitingReads === running.length)
    world.sample(bytesNow())
    const appends = bodies.map((body) => world.append(stream, body, BODY_BYTES))
    for (let index = running.length; index < many; index++) {
      running.push(run(join(index), start, (index + number) % (WRITERS + 1)))
    }
    await Promise.all(appends)
    world.sample(bytesNow())
    await Promise.all(running)
  }
  return {
    name,
    round,
    budget: ({ many }) => many * followerBytes + MIB,
    isOfAnyStorage: starts === HANDLER_FOLLOWERS,
    scales: { test: { rounds, many: 1_000 }, campaign: { rounds: 50, many: 2_000 } },
  }
}

/** Reads this many records and leaves. */
async function run(follower: Follower, start: number, count: number): Promise<void> {
  let next = start
  // The last batch may extend beyond `count`.
  while (next < start + count) {
    for (const seqNum of await follower.next()) {
      if (seqNum !== next) throw new Error(`record ${seqNum} instead of ${next}`)
      next++
    }
  }
  await follower.leave()
}

// The memory of an open session with its first batch: all records appended before, decoded.
const IN_PROCESS = SESSION_BYTES.inProcess + WRITERS * 1_024
const RESPONSE = SESSION_BYTES.response + WRITERS * 1_024

export const FOLLOWERS: readonly Scenario[] = [
  followers('followers that come and go', LOCAL_FOLLOWERS, IN_PROCESS, 2),
  followers('followers that come and go, over HTTP', HANDLER_FOLLOWERS, RESPONSE, 1),
]
