import { writeSync } from 'node:fs'
import { countAllocations } from './allocations.ts'
import type { Orders } from './messages.ts'
import { play } from './play.ts'
import type { AnyTarget } from './target.ts'

/** What a child does: it plays the orders that it was given, and tells what happens on its standard output. */
export async function asChild(targets: readonly AnyTarget[]): Promise<void> {
  countAllocations()
  const orders: Orders = JSON.parse(process.argv[2]!)
  // Written at once: what were still to be written when the process dies would say where it was.
  await play(targets, orders, (message) => writeSync(1, `${JSON.stringify(message)}\n`))
}
