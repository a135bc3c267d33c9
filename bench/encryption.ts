/**
 * What encryption at rest costs: sealing a batch at once, as headwater does, against record by record; and awaited appends to an encrypted stream
 * against a plain one, on memory. Medians, taken in one run in alternation, so that their ratios mean something on a busy machine.
 *
 *     npm run bench -- encryption
 */
import { aegis256 } from '../adapters/aegis-256/index.ts'
import { memory } from '../adapters/storage/memory/index.ts'
import { aesGcmOfNode } from '../src/engine/encryption/aes-gcm-node.ts'
import { aesGcmOfWeb } from '../src/engine/encryption/aes-gcm-web.ts'
import { nodeCrypto } from '../src/engine/node-crypto.ts'
import { type CipherSuite, open, type Stream } from '../src/index.ts'
import { appendBatch } from '../src/model/append-input.ts'
import { EncryptionKey } from '../src/model/encryption-key.ts'
import { encodePlaintext, SEALED_FORMATS } from '../src/storage/sealed-block.ts'

const RECORDS = 1000
const BODY_BYTES = [100, 1024]
const ROUNDS = 24
const ROUND_MS = 10

const KEY = new Uint8Array(32).fill(7)
const ASSOCIATED_DATA = new Uint8Array(40)
const aegis = await aegis256()
const SUITES: readonly (readonly [string, CipherSuite])[] = [
  ['aes-256-gcm, node:crypto', aesGcmOfNode(nodeCrypto()!)],
  ['aes-256-gcm, WebCrypto', aesGcmOfWeb(crypto.subtle)],
  ['aegis-256, libsodium', aegis],
]

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[values.length >> 1]!
}

/** Microseconds for one call, over as many calls as fit into a round. */
async function round(work: () => unknown): Promise<number> {
  const start = performance.now()
  let calls = 0
  do {
    await work()
    calls++
  } while (performance.now() - start < ROUND_MS)
  return ((performance.now() - start) * 1000) / calls
}

/** Medians of both, without the rounds that are the compiler's. */
async function compare(one: () => unknown, other: () => unknown): Promise<[number, number]> {
  const times: [number[], number[]] = [[], []]
  for (let i = 0; i < ROUNDS; i++) {
    times[0].push(await round(one))
    times[1].push(await round(other))
  }
  return [median(times[0].slice(ROUNDS / 4)), median(times[1].slice(ROUNDS / 4))]
}

function report(title: string, [ours, other]: [number, number], names: [string, string]): void {
  const [one, two] = [`${names[0]} ${ours.toFixed(0)} µs`, `${names[1]} ${other.toFixed(0)} µs`]
  console.log(
    `| ${title.padEnd(62)} | ${one.padStart(18)} | ${two.padStart(18)} | ${(other / ours).toFixed(2).padStart(6)} |`,
  )
}

for (const bodyBytes of BODY_BYTES) {
  const record = { body: new Uint8Array(bodyBytes).fill(1) }
  const metered = Math.min(RECORDS, Math.floor(1_048_576 / (bodyBytes + 8)))
  const { records } = appendBatch(Array.from({ length: metered }, () => record))
  const key = new EncryptionKey(KEY)
  for (const [name, suite] of SUITES) {
    const nonce = () => crypto.getRandomValues(new Uint8Array(SEALED_FORMATS[suite.name].nonceBytes))
    const seal = (some: typeof records) => suite.seal(key, nonce(), encodePlaintext(some)!, ASSOCIATED_DATA)
    const atOnce = () => seal(records)
    const each = () => Promise.all(records.map((one) => seal([one])))
    report(`seal ${records.length} × ${bodyBytes} B, ${name}`, await compare(atOnce, each), ['batch', 'each'])
  }
}

for (const [name, suite] of SUITES) {
  const hw = await open({ storage: memory(), ciphers: [suite] })
  await hw.ensureBasin('encrypted', { streamCipher: suite.name })
  const plain = hw.basin('plain').stream('s')
  const encrypted = hw.basin('encrypted').stream('s', { encryptionKey: KEY })
  for (const [size, records] of [
    ['1 × 100 B', ['x'.repeat(100)]],
    ['100 × 100 B', Array.from({ length: 100 }, () => 'x'.repeat(100))],
  ] as const) {
    const append = (stream: Stream) => () => stream.append(records)
    const times = await compare(append(plain), append(encrypted))
    report(`awaited append of ${size}, ${name}`, times, ['plain', 'sealed'])
  }
  const read = (stream: Stream) => async () => (await stream.readBatch({ seqNum: 0 })).records.length
  report(`read of 1,000 appends of one record, ${name}`, await compare(read(plain), read(encrypted)), [
    'plain',
    'sealed',
  ])
  await hw.close()
}
