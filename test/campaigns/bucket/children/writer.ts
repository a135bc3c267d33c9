import { writeSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { fromEnvironment } from '../../../../adapters/storage/s3/credentials.ts'
import { openBucket } from '../../../../adapters/storage/s3/open-bucket.ts'
import { type Engine, open, trimRecord } from '../../../../src/index.ts'
import { StorageFailure } from '../../../../src/storage/errors.ts'
import { BASIN, bodyOf, STREAMS } from './records.ts'

/**
 * Appends to some streams of a bucket until another writer has taken it over, or until it is killed. Opens the
 * bucket again after any other failure, unless it has to end. Prints what was acknowledged.
 */
const [writer, endpoint, bucket] = process.argv.slice(2) as [string, string, string]
/** Journals are rolled all the time. */
const ROLL_BYTES = 20_000
const KEPT_RECORDS = 200
const print = (line: string): void => void writeSync(1, `${line}\n`)
let serial = 0

let isEnding = false
process.stdin.once('data', () => {
  isEnding = true
  print('ending')
})

while (!isEnding) {
  try {
    await run()
  } catch (error) {
    const failure = causeOf(error)
    print(`failed ${failure.message}`)
    if (StorageFailure.is(failure) && failure.kind === 'blocked') break
    await setTimeout(100)
  }
}
process.exit()

function causeOf(error: unknown): Error {
  const { cause } = error as Error
  return cause === undefined || StorageFailure.is(error) ? (error as Error) : causeOf(cause)
}

async function run(): Promise<void> {
  const location = {
    bucket,
    prefix: 'data/',
    endpoint,
    region: 'us-east-1',
    credentials: fromEnvironment,
    fetch: globalThis.fetch,
  }
  const hw = await open({
    storage: {
      manifest: { name: 's3', durability: 'power-loss', shared: false, notifications: 'reliable' },
      open: (context) => openBucket(location, { takeOver: true, rollBytes: ROLL_BYTES }, context),
    },
    onBackgroundError: () => {},
  })
  try {
    await hw.ensureBasin(BASIN)
    print('open')
    if (isEnding) process.exit()
    await Promise.all(STREAMS.map((stream) => write(hw, stream)))
  } finally {
    await hw.close().catch(() => {})
  }
}

async function write(hw: Engine, name: string): Promise<void> {
  await hw.basin(BASIN).ensureStream(name)
  const stream = hw.basin(BASIN).stream(name)
  for (let round = 0; ; round++) {
    const first = serial
    const count = 1 + (round % 5)
    serial += count
    const bodies = Array.from({ length: count }, (_, i) => bodyOf(writer, first + i))
    const { start, end } = await stream.append(bodies)
    print(`acked ${name} ${start.seqNum} ${first} ${count} ${writer}`)
    if (round % 20 < 19 || end.seqNum < KEPT_RECORDS) continue
    const point = end.seqNum - KEPT_RECORDS
    print(`trims ${name} ${point}`)
    await stream.append(trimRecord(point))
  }
}
