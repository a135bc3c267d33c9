import { type Scale, type Scenario, SESSION_BYTES } from '../harness/scenario.ts'
import { bytesInUse } from '../harness/snapshot.ts'
import type { World } from '../harness/world.ts'
import { HANDLER_FOLLOWERS, LOCAL_FOLLOWERS, type StartFollower } from './follower.ts'

/** Opens a session. Resolves to a function that ends it. */
type Idle = (world: World) => Promise<() => unknown>

const following =
  (start: StartFollower): Idle =>
  async (world) => {
    const follower = start(world, 0)
    await follower.next()
    return () => follower.leave()
  }

const appending: Idle = async (world) => {
  const session = await world.stream().appendSession({ signal: world.lasting })
  return () => session.close()
}

/** Idle open sessions, whose memory `limits.openSessions` multiplies. */
function idleSessions(name: string, kinds: readonly Idle[], sessionBytes: number): Scenario {
  async function round(world: World, { many }: Scale): Promise<void> {
    if (world.storedBytes === 0) await world.append(world.stream(), 'x', 1)
    const opening = Array.from({ length: many }, (_, index) => kinds[index % kinds.length]!(world))
    const ends = await Promise.all(opening)
    world.sample(await bytesInUse())
    await Promise.all(ends.map((end) => end()))
  }
  return {
    name,
    round,
    budget: ({ many }) => many * sessionBytes,
    isOfAnyStorage: true,
    scales: { test: { rounds: 1, many: 800 }, campaign: { rounds: 3, many: 20_000 } },
  }
}

export const IDLE_SESSIONS: readonly Scenario[] = [
  idleSessions('idle followers', LOCAL_FOLLOWERS.map(following), SESSION_BYTES.inProcess),
  idleSessions('idle followers, over HTTP', HANDLER_FOLLOWERS.map(following), SESSION_BYTES.response),
  idleSessions('idle append sessions', [appending], SESSION_BYTES.append),
]
