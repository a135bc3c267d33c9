import { connect } from '../../../adapters/client/index.ts'
import { fold } from '../../../adapters/fold/index.ts'
import { indexedDb } from '../../../adapters/storage/indexeddb/index.ts'
import { syncedBasin, syncedStream } from '../../../adapters/sync/index.ts'
import { type HeadwaterError, open } from '../../../src/index.ts'

/** Uses streams of a server that has none yet, as an app does at its first start. */
export async function start(url: string): Promise<unknown> {
  const server = await connect({ url })
  const remote = server.basin('my-first-app')
  const hw = await open({ storage: indexedDb('first-start') })
  const local = hw.basin('my-first-app')

  const exists = await remote.stream('missing').exists()
  const code = await remote
    .stream('missing')
    .read()
    .toArray()
    .catch((error: unknown) => (error as HeadwaterError).code)

  const chat = syncedStream(remote.stream('chat'), local.stream('chat'))
  await chat.append('hello')
  await chat.outbox.flush()

  const rooms = await syncedBasin({ remote, local, prefix: 'rooms/' })
  await rooms.stream('rooms/1').append('hello')
  await rooms.stream('rooms/1').outbox.flush()

  const counted = remote.stream('counted')
  const { end } = await counted.append('one')
  const count = fold(counted, { initial: 0, reduce: (sum: number) => sum + 1, version: 1, snapshotEvery: 1 })
  const value = await count.reached(end.seqNum)
  const { records } = await counted.readBatch({ seqNum: end.seqNum })

  await Promise.all([chat.close(), rooms.close(), count.close()])
  await server.close()
  return { exists, code, value, records: records.length }
}
