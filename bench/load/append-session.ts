import { AppendInput, AppendRecord, S2 } from '@s2-dev/streamstore'
import type { Prepared } from '../harness/host.ts'
import { bodiesFrom } from '../harness/records.ts'

export interface SessionLoad {
  readonly port: number
  /** Of a batch. */
  readonly records: number
}

/** One session of the published client, with as much in flight as it allows by default. */
export async function appendSession({ port, records }: SessionLoad): Promise<Prepared> {
  const url = `http://127.0.0.1:${port}`
  const client = new S2({ accessToken: 'any', endpoints: { account: url, basin: url } })
  const session = await client.basin('my-basin').stream('streams/1').appendSession()
  const input = AppendInput.create(bodiesFrom(0, records).map((body) => AppendRecord.bytes({ body })))
  return {
    async turn(count) {
      let ticket = await session.submit(input)
      for (let i = 1; i < count; i++) ticket = await session.submit(input)
      await ticket.ack()
    },
    close: () => session.close(),
  }
}
