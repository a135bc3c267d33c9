import { readdirSync } from 'node:fs'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host } from '../harness/host.ts'
import { bodyOf } from '../harness/records.ts'

/** Concurrent appends. */
const IN_FLIGHT = 256
const BODY_BYTES = 8

host({
  /** Fills the directory with streams of one record, which another process opens. */
  async fill({ directory, size }: { directory: string; size: number }) {
    const headwater = await openHeadwater(directory)
    let next = 0
    const append = async () => {
      for (let number = next++; number < size; number = next++) {
        await streamNumber(headwater, number).append(bodyOf(number, BODY_BYTES))
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, append))
    await headwater.close()
    return {}
  },

  async open({ directory }: { directory: string }) {
    if (readdirSync(directory).length === 0) throw new Error(`${directory} is empty`)
    // Loads the code, whose time and memory do not depend on the streams.
    await (await openHeadwater()).close()
    let headwater: Awaited<ReturnType<typeof openHeadwater>>
    return {
      async turn() {
        headwater = await openHeadwater(directory)
      },
      close: () => headwater.close(),
    }
  },

  /** Holds so many bytes for each stream, as a limit for memory. */
  async 'hold bytes'({ size, bytes }: { size: number; bytes: number }) {
    const held: Buffer[] = []
    return {
      async turn() {
        held.push(Buffer.alloc(size * bytes, 1))
      },
      close: () => held.splice(0),
    }
  },
})
