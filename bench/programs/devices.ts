import type { Stream } from '../../src/index.ts'
import { Child } from '../harness/child.ts'
import { loadClient, loadSync, openHeadwater, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'

interface Place {
  readonly directory: string
  readonly devices: number
}

/** The records that a device appends before it waits until the server has them. */
const RECORDS = Array.from({ length: 10 }, () => 'x'.repeat(256))

/** A device: appends records, and resolves when the server has them. */
interface Device {
  append(): Promise<unknown>
  close?(): Promise<unknown>
}

host({
  outboxes: (place: Place) => prepared(place, withOutbox),
  /** Every client sends what it has on condition of the tail, and again when another one was first. */
  conditional: (place: Place) => prepared(place, withCondition),
  /** No client knows whether an append of unknown outcome took effect. */
  unconditional: (place: Place) =>
    prepared(place, async (remote) => ({ append: () => remote.append(RECORDS) })),
})

/** All devices in this process, each with its own storage and client, and the server in another one. */
async function prepared(
  { directory, devices: number }: Place,
  open: (remote: Stream, index: number) => Promise<Device>,
): Promise<Prepared> {
  const server = new Child('headwater-server', process.env.HEADWATER_DIST!)
  const { port } = await server.prepare('server', { directory, size: 1 })
  const { connect } = await loadClient()
  const clients = await Promise.all(
    Array.from({ length: number }, () => connect({ url: `http://127.0.0.1:${port}` })),
  )
  const devices = await Promise.all(
    clients.map((client, index) => open(client.basin('my-basin').stream('streams/1'), index)),
  )
  return {
    turn: (count) => wholeTurn(devices, count),
    async close() {
      for (const device of devices) await device.close?.()
      for (const client of clients) await client.close()
      await server.close()
    },
  }
}

async function withOutbox(remote: Stream, index: number): Promise<Device> {
  const { outbox } = await loadSync()
  const headwater = await openHeadwater()
  const box = outbox(streamNumber(headwater, index), remote)
  return {
    append: async () => (await box.append(RECORDS)).confirmed(),
    async close() {
      await box.close()
      await headwater.close()
    },
  }
}

async function withCondition(remote: Stream): Promise<Device> {
  let matchSeqNum = 0
  const append = async (): Promise<void> => {
    try {
      matchSeqNum = (await remote.append(RECORDS, { matchSeqNum })).end.seqNum
    } catch (error) {
      const { code, seqNum } = error as { readonly code?: string; readonly seqNum?: number }
      if (code !== 'seq_num_mismatch') throw error
      matchSeqNum = seqNum!
      await append()
    }
  }
  return { append }
}

/** Appends `count` records, which all devices share. Returns how many it were. */
async function wholeTurn(devices: readonly Device[], count: number): Promise<number> {
  const rounds = Math.ceil(count / RECORDS.length / devices.length)
  await Promise.all(
    devices.map(async (device) => {
      for (let round = 0; round < rounds; round++) await device.append()
    }),
  )
  return rounds * RECORDS.length * devices.length
}
