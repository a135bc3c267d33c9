import { macrotask } from '../../src/runtime/macrotask.ts'

/** How many followers are served before the reply to an append. More would delay it for too long. */
const SERVED_FIRST_MAX = 8

let count = 0
let serving: Promise<void> | undefined

/** Records that something was written to a follower over HTTP/2. */
export function countServed(): void {
  count++
  serving ??= macrotask().then(() => {
    count = 0
    serving = undefined
  })
}

/**
 * Resolves once Node has sent what was written to followers over HTTP/2 in this turn of the event loop, which
 * it does in the next one; undefined if that is nothing, or too much to wait for. Over HTTP/1.1, followers
 * get an event before the append that caused it is acknowledged. Over HTTP/2 too, if its reply waits.
 */
export function followersServed(): Promise<void> | undefined {
  return count <= SERVED_FIRST_MAX ? serving : undefined
}
