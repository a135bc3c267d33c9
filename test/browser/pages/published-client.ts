import {
  AppendInput,
  AppendRecord,
  RangeNotSatisfiableError,
  S2,
  type S2Stream,
  SeqNumMismatchError,
} from '@s2-dev/streamstore'

async function newStream(url: string, basin: string) {
  const s2 = new S2({
    accessToken: 'a token',
    endpoints: { account: url, basin: url },
    // The default of 5 seconds is short for a busy machine.
    requestTimeoutMillis: 120_000,
  })
  await s2.basins.create({ basin })
  const streams = s2.basin(basin)
  await streams.streams.create({ stream: 'chats/42' })
  return streams.stream('chats/42')
}

function append(stream: S2Stream, ...bodies: string[]) {
  return stream.append(AppendInput.create(bodies.map((body) => AppendRecord.string({ body }))))
}

/** Follows history and live records; each append waits until the previous record was read. */
export async function follow(url: string, basin: string) {
  const stream = await newStream(url, basin)
  const ack = await append(stream, 'a', 'b')
  const session = await stream.readSession({ start: { from: { seqNum: 0 } } })
  const bodies: string[] = []
  for await (const record of session) {
    bodies.push(record.body)
    if (record.seqNum === 1) await append(stream, 'c')
    if (record.seqNum === 2) await append(stream, 'd')
    if (record.seqNum === 3) break
  }
  await session.cancel().catch(() => {})
  await stream.close()
  return { end: ack.end.seqNum, bodies }
}

/** Details of the errors that clients branch on. */
export async function errors(url: string, basin: string) {
  const stream = await newStream(url, basin)
  await append(stream, 'a')
  const mismatch = await stream
    .append(AppendInput.create([AppendRecord.string({ body: 'b' })], { matchSeqNum: 0 }))
    .catch((error: unknown) => error)
  const beyond = await stream.read({ start: { from: { seqNum: 9 } } }).catch((error: unknown) => error)
  await stream.close()
  return {
    expected: mismatch instanceof SeqNumMismatchError && mismatch.expectedSeqNum,
    tail: beyond instanceof RangeNotSatisfiableError && beyond.tail?.seqNum,
  }
}
