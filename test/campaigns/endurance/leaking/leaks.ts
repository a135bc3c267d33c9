import { openSync } from 'node:fs'
import type { Scenario } from '../harness/scenario.ts'
import { bytesInUse } from '../harness/snapshot.ts'
import type { World } from '../harness/world.ts'

const retained: unknown[] = []
const MIB = 1_048_576

/** A scenario that leaks something in each round. */
function leaking(name: string, leak: (world: World) => unknown): Scenario {
  const scale = { rounds: 3, many: 1 }
  return {
    name,
    round: async (world) => void (await leak(world)),
    budget: () => MIB,
    scales: { test: scale, campaign: scale },
  }
}

/** The expected problem of each scenario, by name. */
export const EXPECTED: Readonly<Record<string, RegExp>> = {
  'nothing at all': /^$/,
  'a listener': /^abort listeners after the rounds: 1 → 4$/m,
  'a timer of the clock': /^timers after the rounds: \d → \d$/m,
  'a timer of the process': /^Timeout after the rounds: 1 → 4$/m,
  'a session': /^openSessions after the rounds: 1 → 4$/m,
  'a reader that waits': /^waitingReads after the rounds: 1 → 4$/m,
  'a file': /^descriptors after the rounds: /m,
  'a listener of the process': /^process\.on\(exit\) after the rounds: \d → \d$/m,
  objects: /^\d{7,} bytes more in use, of at most 2097152$/m,
  buffers: /^\d{7,} bytes more in use, of at most 2097152$/m,
  'memory, for a while': /^\d{7,} bytes in use at once, of at most 1048576$/m,
  'an error': /^an error: Error: told$/m,
}

export const LEAKS: readonly Scenario[] = [
  leaking('nothing at all', () => {}),
  leaking('a listener', (world) => world.lasting.addEventListener('abort', () => {})),
  leaking('a timer of the clock', (world) => world.clock.schedule(1_000, () => {})),
  leaking('a timer of the process', () => setTimeout(() => {}, 2_147_483_647).ref()),
  leaking('a session', (world) => world.stream().appendSession()),
  leaking('a reader that waits', async (world) => {
    const { waitingReads } = world.hw.stats()
    const cursor = await world.stream('silent').openCursor({}, { create: true })
    void Promise.resolve(cursor!.next()).catch(() => {})
    await world.until(() => world.hw.stats().waitingReads > waitingReads)
  }),
  leaking('a file', () => openSync('/dev/null', 'r')),
  leaking('a listener of the process', () => process.on('exit', () => {})),
  leaking('objects', () => retained.push(Array.from({ length: 20_000 }, (_, index) => ({ index })))),
  leaking('buffers', () => retained.push(new Uint8Array(MIB).fill(1))),
  leaking('memory, for a while', async (world) => {
    const many = new Uint8Array(2 * MIB).fill(1)
    world.sample(await bytesInUse())
    if (many[0] !== 1) throw new Error('it was collected')
  }),
  leaking('an error', (world) => world.errors.push(new Error('told'))),
]
