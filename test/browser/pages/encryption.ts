import { memory } from '../../../adapters/storage/memory/index.ts'
import { HeadwaterError, open } from '../../../src/index.ts'
import type { Cipher } from '../../../src/model/config.ts'

const KEY = Uint8Array.from({ length: 32 }, (_, byte) => byte)

/** Imported on demand, because libsodium compiles WebAssembly on import, which not every page permits. */
async function aegis256() {
  const module = await import('../../../adapters/aegis-256/index.ts')
  return module.aegis256()
}

/** An engine with an encrypted stream, and a function that opens the stream with a key. */
async function openEncrypted(streamCipher: Cipher) {
  const ciphers = streamCipher === 'aegis-256' ? [await aegis256()] : []
  const hw = await open({ storage: memory(), ciphers })
  await hw.createBasin('vault', { streamCipher })
  await hw.basin('vault').createStream('letters', { timestamping: { uncapped: true } })
  const letters = (encryptionKey?: Uint8Array) => hw.basin('vault').stream('letters', { encryptionKey })
  return { hw, letters }
}

async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call
    return 'none'
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return `${error.status} ${error.code}`
  }
}

/** Appends and reads every byte in body and header, with the key, with wrong keys and without. */
export async function roundTrip(cipher: Cipher) {
  const { hw, letters } = await openEncrypted(cipher)
  const body = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  const ack = await letters(KEY).append({ headers: [[body, body.toReversed()]], body, timestamp: 1 })
  const { records } = await letters(KEY).readBatch({ seqNum: 0 }, { as: 'bytes' })
  const [record] = records
  const [[name, value]] = record!.headers as [[Uint8Array, Uint8Array]]
  const { cipher: listed } = (await hw.basin('vault').listStreams()).items[0]!
  const refusals = [
    await refusal(letters(new Uint8Array(32)).readBatch({ seqNum: 0 })),
    await refusal(
      letters(new Uint8Array(32))
        .follow({ seqNum: 0 }, { as: 'bytes' })
        .records$.forEach(() => {}),
    ),
    await refusal(letters(new Uint8Array(31)).readBatch({ seqNum: 0 })),
    await refusal(letters().append('x')),
  ]
  const tail = (await letters().checkTail()).seqNum
  await hw.close()
  return { end: ack.end.seqNum, body: record!.body, name, value, listed, refusals, tail }
}

/**
 * Follows history and live records; each append waits for the reads before it. A second follower has a wrong
 * key.
 */
export async function follow(cipher: Cipher) {
  const { hw, letters } = await openEncrypted(cipher)
  await letters(KEY).append(['a', 'b'])
  const bodies: string[] = []
  const wrongKey = refusal(
    letters(new Uint8Array(32))
      .follow({ tailOffset: 0 }, { as: 'bytes' })
      .records$.forEach(() => {}),
  )
  for await (const { records: text } of letters(KEY).follow({ seqNum: 0 }).batches()) {
    bodies.push(...text.map(({ seqNum, body }) => `${seqNum} ${body}`))
    if (bodies.length === 2) await letters(KEY).append(['c', 'd'])
    if (bodies.length === 4) await letters(KEY).append('e')
    if (bodies.length === 5) break
  }
  const result = { bodies, wrongKey: await wrongKey, open: hw.stats().openReads }
  await hw.close()
  return result
}

/** Delays every third WebCrypto call, which Chromium rarely does on its own. */
function delaySomeEncryption(): void {
  const { subtle } = crypto
  const encrypt = subtle.encrypt.bind(subtle)
  let calls = 0
  const late: typeof encrypt = async (...args) => {
    const turns = calls++ % 3 === 0 ? 5 : 0
    const answer = await encrypt(...args)
    for (let i = 0; i < turns; i++) await new Promise((resolve) => setTimeout(resolve))
    return answer
  }
  Object.defineProperty(subtle, 'encrypt', { value: late })
}

/** Concurrent appends of very different sizes, and the order in which they are stored. */
export async function appendInOrder(cipher: Cipher, appends: number) {
  delaySomeEncryption()
  const { hw, letters } = await openEncrypted(cipher)
  const stream = letters(KEY)
  const bodies = Array.from({ length: appends }, (_, i) => `${i}`.padEnd(i % 20 === 0 ? 200_000 : 3, '.'))
  const acks = await Promise.all(bodies.map((body) => stream.append(body)))
  const read: string[] = []
  for await (const { records: text } of stream.read({ seqNum: 0, count: appends }).batches()) {
    read.push(...text.map(({ body }) => body))
  }
  const { pendingAppends, appendBytesInFlight } = hw.stats()
  await hw.close()
  return {
    seqNums: acks.map(({ start }) => start.seqNum),
    isInOrder: read.length === appends && read.every((body, i) => body === bodies[i]),
    left: { pendingAppends, appendBytesInFlight },
  }
}

/** Resolves to the error of `aegis256()` in a page that permits no WebAssembly. */
export function aegisWithoutWebAssembly(): Promise<string> {
  return aegis256().then(
    () => 'works',
    (error: Error & { code?: string }) => `${error.code}: ${error.message}`,
  )
}
