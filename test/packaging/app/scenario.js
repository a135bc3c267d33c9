import { firstValueFrom, take, toArray } from 'rxjs'

/**
 * What a page does with an engine, and what it is told then. Names of its own, for storages that keep what
 * they are given.
 */
export async function scenario(open, storage) {
  const failures = []
  const hw = await open({ storage, onBackgroundError: (error) => failures.push(String(error)) })
  const stream = hw.basin('my-app').stream('chats/42')
  const { start, end } = await stream.append(['a', 'b'])
  const followed = firstValueFrom(stream.follow({ seqNum: start.seqNum }).records$.pipe(take(3), toArray()))
  await stream.append('c', { matchSeqNum: end.seqNum })
  const bodies = (await followed).map(({ body }) => body)
  const late = await parts(hw, stream)
  await hw.close()
  return { bodies, late, failures }
}

/** Of each part that is loaded late, something. */
async function parts(hw, stream) {
  const { items } = await hw.basin('my-app').listStreams()
  const producer = stream.producer()
  const ticket = await producer.submit('d')
  await producer.close()
  const { seqNum } = await ticket.ack()
  await hw.ensureBasin('sealed', { streamCipher: 'aes-256-gcm' })
  const sealed = hw.basin('sealed').stream('diary', { encryptionKey: new Uint8Array(32).fill(7) })
  await sealed.append('secret')
  const [record] = (await sealed.readBatch()).records
  const token = await hw.issueAccessToken({
    id: 'guest',
    scope: { basins: { prefix: '' }, ops: ['list-streams'] },
  })
  const refused = await hw
    .as(token)
    .createBasin('mine')
    .catch(({ code }) => code)
  return { streams: items.map(({ name }) => name), seqNum, secret: record.body, refused }
}
