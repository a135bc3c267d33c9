import type { Engine } from '../../src/index.ts'
import { loadNode, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, recordsOfBatch, textOf } from '../harness/records.ts'

interface Storage {
  /** In memory if absent. */
  readonly onDisk?: boolean
  readonly directory: string
}

host({
  server: (storage: Storage) =>
    serveFilled(storage, async (headwater) => {
      await streamNumber(headwater, 0).append(Array.from({ length: 100 }, () => textOf()))
      await streamNumber(headwater, 1).append('for sessions')
    }),

  /** With `size` records of `bytes` bytes, in full batches, and another stream. */
  'filled server': ({ size, bytes, ...storage }: Storage & { size: number; bytes: number }) =>
    serveFilled(storage, async (headwater) => {
      await streamNumber(headwater, 0).append(Array.from({ length: 100 }, () => 'short'))
      const each = recordsOfBatch(bytes)
      for (let first = 0; first < size; first += each) {
        await streamNumber(headwater, 1).append(bodiesFrom(first, Math.min(each, size - first), bytes))
      }
    }),
})

async function serveFilled(
  { directory, onDisk = false }: Storage,
  fill: (headwater: Engine) => Promise<void>,
): Promise<Prepared> {
  const { serve } = await loadNode()
  const headwater = await openHeadwater(onDisk ? directory : undefined)
  await fill(headwater)
  const server = await serve(headwater, { auth: 'none', port: 0 })
  return {
    info: { port: server.port },
    close: () => Promise.all([server.close(), headwater.close()]),
  }
}
