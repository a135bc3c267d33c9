import { AppendInput, AppendRecord, S2, type S2Stream } from '@s2-dev/streamstore'
import type { Stream } from '../../src/index.ts'
import { Child } from '../harness/child.ts'
import { loadClient } from '../harness/headwater.ts'
import { host, type Prepared, type Sides } from '../harness/host.ts'
import { bodiesFrom, bodyOf } from '../harness/records.ts'

const BODY_BYTES = bodyOf(0).length

interface Place {
  readonly directory: string
  readonly size: number
  readonly onDisk?: boolean
  /** Of a batch. */
  readonly records: number
}

/** What both clients do, with the same bodies, on servers of their own. */
interface Performer {
  openSession(): Promise<{
    /** Resolves when the session accepts the batch, to the wait for its acknowledgement. */
    submit(bodies: readonly Uint8Array[]): Promise<() => Promise<unknown>>
    close(): Promise<unknown>
  }>
  /** Reads everything. Returns the number of records, and visits the body of each. */
  read(): Promise<number>
  close(): Promise<unknown>
}

type Connect = (url: string) => Promise<Performer>

host({
  ...sidesOf('headwater', headwater),
  ...sidesOf('published', published),
})

/** The client runs in the process of the side, which is measured, and the server in another. */
function sidesOf(name: string, connect: Connect): Sides {
  return {
    [`${name} session`]: (place: Place) =>
      withServer(connect, 'server', place, async (client) => {
        const session = await client.openSession()
        const bodies = bodiesFrom(0, place.records)
        return {
          async turn(count) {
            let acked = await session.submit(bodies)
            for (let i = 1; i < count; i++) acked = await session.submit(bodies)
            await acked()
            return count * place.records
          },
          close: () => session.close(),
        }
      }),

    [`${name} read`]: (place: Place) =>
      withServer(connect, 'filled server', place, async (client) => ({
        turn: () => client.read(),
      })),
  }
}

async function withServer(
  connect: Connect,
  side: string,
  { directory, size, onDisk }: Place,
  prepare: (client: Performer) => Promise<Prepared>,
): Promise<Prepared> {
  const server = new Child('headwater-server')
  const { port } = await server.prepare(side, { directory, size, onDisk, bytes: BODY_BYTES })
  const client = await connect(`http://127.0.0.1:${port}`)
  const { turn, close } = await prepare(client)
  return {
    turn: turn!,
    async close() {
      await close?.()
      await client.close()
      await server.close()
    },
  }
}

async function headwater(url: string): Promise<Performer> {
  const { connect } = await loadClient()
  const client = await connect({ url })
  const stream: Stream = client.basin('my-basin').stream('streams/1')
  return {
    async openSession() {
      const session = await stream.appendSession()
      return {
        async submit(bodies) {
          const ticket = await session.submit(bodies)
          return () => ticket.ack()
        },
        close: () => session.close(),
      }
    },
    async read() {
      let [count, bytes] = [0, 0]
      for await (const { body } of stream.read({}, { as: 'bytes' })) {
        count++
        bytes += body.length
      }
      return assertRead(count, bytes)
    },
    close: () => client.close(),
  }
}

async function published(url: string): Promise<Performer> {
  const client = new S2({ accessToken: 'any', endpoints: { account: url, basin: url } })
  const stream: S2Stream = client.basin('my-basin').stream('streams/1')
  const inputOf = (bodies: readonly Uint8Array[]) =>
    AppendInput.create(bodies.map((body) => AppendRecord.bytes({ body })))
  return {
    async openSession() {
      const session = await stream.appendSession()
      return {
        async submit(bodies) {
          const ticket = await session.submit(inputOf(bodies))
          return () => ticket.ack()
        },
        close: () => session.close(),
      }
    },
    async read() {
      const { tail } = await stream.checkTail()
      const session = await stream.readSession(
        { start: { from: { seqNum: 0 } }, stop: { limits: { count: tail.seqNum } } },
        { as: 'bytes' },
      )
      let [count, bytes] = [0, 0]
      for await (const { body } of session) {
        count++
        bytes += body.length
      }
      return assertRead(count, bytes)
    },
    close: () => stream.close(),
  }
}

/** A read that ends early would look fast. */
function assertRead(count: number, bytes: number): number {
  if (count === 0 || bytes !== count * BODY_BYTES) throw new Error(`read ${count} records, ${bytes} bytes`)
  return count
}
