import { connect } from '../../../adapters/client/index.ts'

/** Appends in every way, reads, and follows until `last`. */
export async function use(url: string, token: string, basin: string) {
  const hw = await connect({ url, token })
  const stream = hw.basin(basin).stream('s')
  await stream.append(['one', 'two'])
  const producer = stream.producer({ lingerMs: 1 })
  const tickets = await Promise.all(['a', 'b'].map((body) => producer.submit(body)))
  await producer.close()
  const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
  const session = await stream.appendSession()
  await session.submit(Uint8Array.of(0, 255))
  await session.close()
  const { records } = await stream.readBatch({ tailOffset: 1 }, { as: 'bytes' })
  const stored = await stream.read({ count: 4 }).toArray()
  const error = await stream.append('late', { matchSeqNum: 0 }).catch(({ code, seqNum }) => [code, seqNum])
  await hw.close()
  return {
    produced: acks.map(({ seqNum }) => seqNum),
    stored: stored.map(({ body }) => body),
    bytes: records.map(({ body }) => [...body]),
    error,
  }
}

const followed: string[] = []

/** Follows a stream from its first record. */
export async function follow(url: string, token: string, basin: string): Promise<void> {
  const hw = await connect({ url, token })
  void (async () => {
    for await (const { body } of hw.basin(basin).stream('s').follow({ seqNum: 0 })) followed.push(body)
  })()
}

/** The records that were followed so far. */
export function received(): readonly string[] {
  return followed
}
