/** Uses a client as an app does. Resolves to what it saw; also in workerd, which lacks Node's modules. */
export async function useClient(hw) {
  const stream = hw.basin('my-app').stream('s')
  const { start } = await stream.append(['one', 'two'])
  await stream.append('three', { matchSeqNum: 2 })
  const producer = stream.producer({ lingerMs: 1 })
  const tickets = []
  for (const body of ['a', 'b', 'c']) tickets.push(await producer.submit(body))
  await producer.close()
  const acks = await Promise.all(tickets.map((ticket) => ticket.ack()))
  const stored = await stream.read().toArray()
  const followed = []
  for await (const { body } of stream.follow({ tailOffset: 2 })) {
    followed.push(body)
    if (body === 'c') await stream.append('live')
    if (body === 'live') break
  }
  const error = await stream.append('late', { matchSeqNum: 0 }).catch(({ code, seqNum }) => [code, seqNum])
  return {
    start: start.seqNum,
    produced: acks.map(({ seqNum }) => seqNum),
    stored: stored.map(({ body }) => body),
    followed,
    error,
  }
}
