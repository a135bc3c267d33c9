import { open } from 'headwater'
import { indexedDb } from 'headwater/indexeddb'
import { memory } from 'headwater/memory'
import { firstValueFrom, take, toArray } from 'rxjs'

const KEY = new Uint8Array(32).fill(7)

/** What a page is told on each storage. */
globalThis.run = async () => ({ memory: await use(memory()), indexeddb: await use(indexedDb('used')) })

/** Uses something of each part. */
async function use(storage) {
  const hw = await open({ storage })
  const stream = hw.basin('my-app').stream('chats/42')
  await stream.append(['a', 'b'])
  const followed = firstValueFrom(stream.follow({ seqNum: 0 }).records$.pipe(take(3), toArray()))
  const producer = stream.producer()
  await producer.submit('c')
  await producer.close()
  const bodies = (await followed).map(({ body }) => body)
  const streams = (await hw.basin('my-app').listStreams()).items.map(({ name }) => name)
  await hw.ensureBasin('sealed', { streamCipher: 'aes-256-gcm' })
  const sealed = hw.basin('sealed').stream('diary', { encryptionKey: KEY })
  await sealed.append('secret')
  const [secret] = (await sealed.readBatch()).records
  const scope = { basins: { prefix: '' }, ops: ['list-streams'] }
  const guest = hw.as(await hw.issueAccessToken({ id: 'guest', scope }))
  const refused = await guest.createBasin('mine').catch(({ code }) => code)
  await hw.close()
  return { bodies, streams, secret: secret.body, refused }
}
