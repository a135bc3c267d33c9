import { HeadwaterError, type Stream } from '../../../../src/index.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { Scale, Scenario } from '../harness/scenario.ts'
import { bytesInUse } from '../harness/snapshot.ts'
import type { World } from '../harness/world.ts'

const MIB = 1_048_576
const BODY_BYTES = 65_536
const STREAMS = 10
const KEPT_BYTES = 8 * MIB

/**
 * Appends in every way to a full storage. They must fail, leave nothing behind, and succeed once there is
 * room again.
 */
async function round(world: World, { many }: Scale, number: number): Promise<void> {
  const streams = Array.from({ length: STREAMS }, (_, index) => world.stream(`filling-${index}`))
  const body = `${number} `.padEnd(BODY_BYTES)
  const tails = await Promise.all(streams.map((stream) => world.append(stream, body, BODY_BYTES)))
  world.storage.isFull = true
  const appendKinds = [single, inSession, byProducer, overHandler]
  const attempts = Array.from({ length: many }, (_, index) => {
    const append = appendKinds[index % appendKinds.length]!
    return append(world, streams[index % STREAMS]!, body)
  })
  // Followers must not see any of it.
  const controller = new AbortController()
  const waiting = streams[0]!.readBatch({ seqNum: tails[0]!, waitMs: 60_000 }, { signal: controller.signal })
  const codes = await Promise.all(attempts)
  world.sample(await bytesInUse())
  const unexpected = codes.filter((code) => code !== 'storage_full: quota' && code !== 'storage: quota')
  if (unexpected.length > 0) throw new Error(`an append to a full storage failed with ${unexpected[0]}`)
  controller.abort()
  await waiting.catch(() => {})
  const { appendBytesInFlight, waitingAppendBytes, openSessions } = world.hw.stats()
  if (appendBytesInFlight + waitingAppendBytes + openSessions > 0)
    throw new Error('failed appends retain resources')
  await checkIntact(streams, tails, body)
  world.storage.isFull = false
  const retried = await Promise.all(streams.map((stream) => world.append(stream, body, BODY_BYTES)))
  for (const [index, tail] of retried.entries()) {
    if (tail !== tails[index]! + 1) throw new Error(`the next append ended at ${tail}, after ${tails[index]}`)
  }
  await Promise.all(streams.map((stream, index) => stream.trim(retried[index]!)))
  for (const stream of streams) await world.free(stream)
  // The errors reported to the owner of the handler and the engine.
  const errors = world.errors.splice(0)
  const otherErrors = errors.filter((error) => !isFull(HeadwaterError.is(error) ? error.cause : error))
  if (otherErrors.length > 0) throw new Error('something else failed', { cause: otherErrors[0] })
}

async function checkIntact(
  streams: readonly Stream[],
  tails: readonly number[],
  body: string,
): Promise<void> {
  for (const [index, stream] of streams.entries()) {
    const { seqNum: tail } = await stream.checkTail()
    if (tail !== tails[index]) throw new Error(`the tail is ${tail} and was ${tails[index]}`)
    const batch = await stream.readBatch({ seqNum: tail - 1 })
    if (batch.records.map((record) => record.body).join() !== body)
      throw new Error('another record than before')
  }
}

function isFull(error: unknown): boolean {
  return StorageFailure.is(error) && error.kind === 'quota'
}

async function codeOf(append: Promise<unknown>): Promise<string> {
  try {
    await append
    return 'no failure'
  } catch (error) {
    if (!HeadwaterError.is(error)) return String(error)
    return `${error.code}: ${isFull(error.cause) ? 'quota' : String(error.cause)}`
  }
}

function single(_: World, stream: Stream, body: string): Promise<string> {
  return codeOf(stream.append(body))
}

async function inSession(_: World, stream: Stream, body: string): Promise<string> {
  const session = await stream.appendSession()
  void session.submit(body).catch(() => {})
  return codeOf(session.close())
}

async function byProducer(_: World, stream: Stream, body: string): Promise<string> {
  const producer = stream.producer({ lingerMs: 0, recordsMax: 1 })
  void producer.submit(body).catch(() => {})
  return codeOf(producer.close())
}

async function overHandler(world: World, stream: Stream, body: string): Promise<string> {
  const headers = { 'content-type': 'application/json' }
  const text = JSON.stringify({ records: [{ body }] })
  const path = `/v1/streams/${stream.name}/records`
  const response = await world.handler(world.request('POST', path, { headers, body: text }))
  const { code } = (await response.json()) as { code: string }
  // Clients do not learn the reason.
  return response.status === 500 ? `${code}: quota` : `${response.status}`
}

export const FULL_STORAGE: Scenario = {
  name: 'a storage that is full',
  round,
  // The forms of an append in flight: the input, its records, a block, and the group that is written.
  budget: ({ many }) => 4 * many * BODY_BYTES + KEPT_BYTES,
  // The buffer for one large write.
  keptBytes: KEPT_BYTES,
  scales: { test: { rounds: 3, many: 100 }, campaign: { rounds: 50, many: 400 } },
}
