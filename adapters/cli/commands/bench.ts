import { randomBytes } from 'node:crypto'
import { type Headwater, HeadwaterError, type Stream } from '../../../src/index.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import type { CliContext } from '../context.ts'
import { delay } from '../context.ts'
import { expectedFailure } from '../creation.ts'
import { CliError, printable } from '../errors.ts'
import { durationOrZero, targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import { type Connected, withHeadwater } from '../target.ts'
import { duration, integer, nameText, resourceName, streamOf } from '../values.ts'
import { untilDeleted } from './resources.ts'

const MIB = 1024 * 1024

export const benchCommand = (context: CliContext) =>
  targetCommand('bench', {
    description: 'Measure how fast a storage or a server appends, follows and reads',
    examples: [
      'headwater bench --storage memory',
      'headwater bench --storage ./data --size 1000 --batch 100 --duration 30s',
      'headwater bench --url https://streams.example.com --target-mibps 10',
    ],
    notes: [
      'Appends to a new stream and follows it, then reads it again from its start. Several appends are in',
      'flight at a time. Ack latency is the time until an append is acknowledged, E2E latency that until the',
      'follower has its records. Removes the stream afterwards, and the basin if it created it, also after a',
      'failure and after Ctrl+C. --storage memory measures the engine alone.',
    ],
  })
    .argument('[BASIN]', 'BASIN of the stream. Default: a new one', resourceName(context))
    .option(
      '--size <N>',
      'Bytes of each record',
      integer(1, BATCH_METERED_BYTES_MAX - RECORD_METERED_BYTES),
      100,
    )
    .option('--batch <N>', 'Records of each append', integer(1, BATCH_RECORDS_MAX), 1000)
    .option('--duration <DURATION>', 'How long to append. Default: 5s', duration)
    .option(
      '--target-mibps <N>',
      'Append this many MiB a second. Default: as many as are accepted',
      integer(1),
    )
    .option('--catchup-delay <DURATION>', 'How long to wait before all is read again', durationOrZero, 0)
    .action(async (given, options) => {
      const random = randomBytes(6).toString('hex')
      const { basin: basinName, stream: wrong } = given ?? { basin: `headwater-bench-${random}` }
      if (wrong !== undefined) throw new CliError(2, 'BASIN must not name a stream; `bench` creates its own')
      const name = { basin: basinName, stream: `bench/${random}` }
      const largest = Math.max(1, Math.floor(BATCH_METERED_BYTES_MAX / (options.size + RECORD_METERED_BYTES)))
      const load = { duration: 5_000, ...options, batch: Math.min(options.batch, largest) }
      const measured = async (hw: Headwater, { server, signal }: Connected) => {
        const basin = hw.basin(basinName)
        const stream = streamOf(hw, name)
        // A caller who may not create basins may measure in one that exists.
        const expected = ['resource_already_exists', 'permission_denied']
        const isNew = (await expectedFailure(hw.createBasin(basinName), expected)) === undefined
        try {
          signal.throwIfAborted()
          await basin.createStream(name.stream)
          await measure(stream, load, signal, context)
        } finally {
          // The first error is the one to reject with.
          await (isNew ? basin : stream).delete().catch((error: unknown) => {
            if (!HeadwaterError.is(error) || error.code === 'stream_not_found') return
            context.printError(`Not removed: ${nameText(name)}: ${printable(error.message)}`)
          })
          if (isNew && server === undefined) await untilDeleted(hw, basinName, context)
        }
      }
      // Requests outlive Ctrl+C: what was created has to be removed.
      return withHeadwater(options, context, measured, { mustExist: false, signal: undefined })
    })

interface Load {
  readonly size: number
  readonly batch: number
  readonly duration: number
  readonly targetMibps?: number | undefined
  readonly catchupDelay: number
}

/** Appends are pipelined, at most this many at a time. */
const IN_FLIGHT_MAX = 8

/** Measures, and prints what the command line of the protocol prints. */
async function measure(stream: Stream, load: Load, signal: AbortSignal, context: CliContext): Promise<void> {
  const { now, clock, print } = context
  const startedAt = now()
  /** When each append was sent. All have the same number of records. */
  const sentAt: number[] = []
  const ackMs: number[] = []
  const e2eMs: number[] = []
  /** How many records were written; infinity until all are. */
  let total = Number.POSITIVE_INFINITY
  let followed = 0
  const following = new AbortController()

  const report = (label: string, from: number, records: number) => {
    const seconds = (now() - from) / 1000
    const bytes = records * load.size
    const rates = `${(bytes / MIB / seconds).toFixed(2)} MiB/s, ${(records / seconds).toFixed(0)} records/s`
    print(`${label}: ${rates} (${bytes} bytes, ${records} records in ${seconds.toFixed(2)}s)`)
  }

  const write = async () => {
    const records = Array.from({ length: load.batch }, () => randomBytes(load.size))
    const bytesPerMs = ((load.targetMibps ?? Number.POSITIVE_INFINITY) * MIB) / 1000
    const session = await stream.appendSession({ signal })
    const pending = new Set<Promise<void>>()
    while (now() - startedAt < load.duration) {
      const early = (sentAt.length * load.batch * load.size) / bytesPerMs - (now() - startedAt)
      if (early > 0) await delay(early, clock, signal)
      signal.throwIfAborted()
      const at = now()
      sentAt.push(at)
      const acked = (await session.submit(records)).ack().then(() => {
        ackMs.push(now() - at)
        pending.delete(acked)
      })
      pending.add(acked)
      // Closing the session reports the failure.
      acked.catch(() => {})
      if (pending.size >= IN_FLIGHT_MAX) await Promise.race(pending)
    }
    await session.close()
    report('Write', startedAt, sentAt.length * load.batch)
  }

  const follow = async () => {
    const options = { as: 'bytes', signal: AbortSignal.any([signal, following.signal]) } as const
    try {
      for await (const { records } of stream.follow({ seqNum: 0 }, options).batches()) {
        const first = Math.floor(followed / load.batch)
        followed += records.length
        for (let i = first; (i + 1) * load.batch <= followed; i++) e2eMs.push(now() - sentAt[i]!)
        if (followed >= total) break
      }
    } catch (error) {
      if (!following.signal.aborted) throw error
    }
  }

  const follower = follow()
  // Reported when it is awaited.
  follower.catch(() => {})
  await write().finally(() => {
    total = sentAt.length * load.batch
    if (followed >= total) following.abort()
  })
  await follower
  report('Read', startedAt, followed)
  await delay(load.catchupDelay, clock, signal)
  const catchupAt = now()
  let caughtUp = 0
  for await (const { records } of stream.read({ seqNum: 0 }, { as: 'bytes', signal }).batches()) {
    caughtUp += records.length
  }
  report('Catchup', catchupAt, caughtUp)
  const headings = ['', 'min', 'median', 'p90', 'p99', 'max']
  printTable([headings, ['Ack latency', ...quantiles(ackMs)], ['E2E latency', ...quantiles(e2eMs)]], context)
}

function quantiles(times: readonly number[]): string[] {
  const sorted = times.toSorted((a, b) => a - b)
  return [0, 0.5, 0.9, 0.99, 1].map((share) => {
    const time = sorted[Math.floor(share * (sorted.length - 1))] ?? 0
    return `${time.toFixed(2)} ms`
  })
}
