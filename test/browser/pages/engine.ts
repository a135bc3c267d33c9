import { connect } from '../../../adapters/client/index.ts'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { HeadwaterError, open } from '../../../src/index.ts'
import type { Cipher } from '../../../src/model/config.ts'

const ALL_BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte)
const KEY = new Uint8Array(32).fill(7)

/** The code with which a call is rejected, and its message. */
async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'none'
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return `${error.code}: ${error.message}`
  }
}

/** Which globals of pages, workers and Node exist. */
export function surroundings(): string[] {
  const names = ['window', 'WorkerGlobalScope', 'process', 'Buffer', 'require']
  return names.filter((name) => name in globalThis)
}

/** Appends, follows, trims and closes. Each append waits for the records before it. */
export async function useEngine() {
  const hw = await open({ storage: memory() })
  const stream = hw.basin('my-app').stream('chats/42')
  await stream.append({ body: ALL_BYTES, headers: [[ALL_BYTES, ALL_BYTES.toReversed()]] })
  const [bytes] = (await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })).records
  const bodies: string[] = []
  await stream.append('a', { matchSeqNum: 1 })
  for await (const { seqNum, body } of stream.follow({ seqNum: 1 })) {
    bodies.push(body)
    if (seqNum === 1) await stream.append(['b', 'c'])
    if (seqNum === 3) break
  }
  const refused = await refusal(stream.append('late', { matchSeqNum: 0 }))
  await stream.trim(3)
  const [first] = (await stream.readBatch({ seqNum: 0 })).records
  const following = refusal(stream.follow({ tailOffset: 0 }).records$.forEach(() => {}))
  await hw.close()
  const { openReads, pendingAppends } = hw.stats()
  return {
    bytes: { body: [...bytes!.body], headers: bytes!.headers.flat().map((part) => [...part]) },
    bodies,
    refused,
    first: first!.seqNum,
    closed: await following,
    left: { openReads, pendingAppends },
  }
}

/** Imported on demand, because libsodium compiles WebAssembly on import, which not every page permits. */
async function aegis256() {
  const module = await import('../../../adapters/aegis-256/index.ts')
  return module.aegis256()
}

/** Resolves to what is read of an encrypted stream with the key, and with a wrong one. */
export async function encrypt(streamCipher: Cipher) {
  const hw = await open({
    storage: memory(),
    ciphers: streamCipher === 'aegis-256' ? [await aegis256()] : [],
  })
  await hw.createBasin('vault', { streamCipher })
  const letters = (encryptionKey: Uint8Array) => hw.basin('vault').stream('letters', { encryptionKey })
  await letters(KEY).append({ body: ALL_BYTES })
  const [record] = (await letters(KEY).readBatch({ seqNum: 0 }, { as: 'bytes' })).records
  const refused = await refusal(letters(new Uint8Array(32)).readBatch({ seqNum: 0 }))
  await hw.close()
  return { body: [...record!.body], refused }
}

/** Resolves to the error of `aegis256()` in a page that permits no WebAssembly. */
export function aegisWithoutWebAssembly(): Promise<string> {
  return refusal(aegis256())
}

/** The features that work in an insecure page, and the messages of the others. */
export async function insecure() {
  const hw = await open({ storage: memory() })
  const stream = hw.basin('in-a-page').stream('plain')
  await stream.append('a')
  const [record] = (await stream.readBatch({ seqNum: 0 })).records
  const refusals = [
    await refusal(hw.createBasin('vault', { streamCipher: 'aes-256-gcm' })),
    await refusal(hw.createRootToken()),
  ]
  await hw.close()
  return { isSecureContext, body: record!.body, refusals }
}

/** Appends in every way through a client, and reads. */
export async function useClient(url: string, token: string) {
  const hw = await connect({ url, token })
  const stream = hw.basin('my-first-app').stream('s')
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
  const refused = await refusal(stream.append('late', { matchSeqNum: 0 }))
  await hw.close()
  return {
    produced: acks.map(({ seqNum }) => seqNum),
    stored: stored.map(({ body }) => body),
    bytes: records.map(({ body }) => [...body]),
    refused,
  }
}

const received: string[] = []

/** Follows a stream of a server from its first record. */
export async function follow(url: string, token: string): Promise<void> {
  const hw = await connect({ url, token })
  void (async () => {
    for await (const { body } of hw.basin('my-first-app').stream('s').follow({ seqNum: 0 }))
      received.push(body)
  })()
}

/** The records that were followed so far. */
export function followed(): readonly string[] {
  return received
}
