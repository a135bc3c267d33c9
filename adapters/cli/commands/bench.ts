import { randomBytes } from 'node:crypto'
import type { Headwater, Stream } from '../../../src/index.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import { type CliContext, delay } from '../context.ts'
import { printable } from '../errors.ts'
import { durationOrZero, targetCommand } from '../options.ts'
import { printTable } from '../output.ts'
import type { Server } from '../server.ts'
import { withHeadwater } from '../target.ts'
import { basinName, duration, integer, nameText, streamOf } from '../values.ts'
import { untilDeleted } from './resources.ts'

const MIB = 1024 * 1024
const SIZE_MAX = BATCH_METERED_BYTES_MAX - RECORD_METERED_BYTES

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
      'follower has its records. Removes the stream afterwards, and a new basin, also after a failure and',
      'after Ctrl+C. --storage memory measures the engine alone.',
    ],
  })
    .argument('[BASIN]', 'Basin of the stream. Default: a new one', basinName)
    .option('--size <N>', 'Bytes of each record', integer(1, SIZE_MAX), 100)
    .option('--batch <N>', 'Records of each append', integer(1, BATCH_RECORDS_MAX), 1000)
    .option('--duration <DURATION>', 'How long to append. Default: 5s', duration)
    .option('--target-mibps <N>', 'MiB a second to append. Default: as many as are accepted', integer(1))
    .option('--catchup-delay <DURATION>', 'How long to wait before all is read again', durationOrZero, 0)
    .action((given, options) => {
      const random = randomBytes(6).toString('hex')
      const name = { basin: given ?? `headwater-bench-${random}`, stream: `bench/${random}` }
      const largest = Math.max(1, Math.floor(BATCH_METERED_BYTES_MAX / (options.size + RECORD_METERED_BYTES)))
      const load = {
        duration: 5_000,
        targetMibps: Infinity,
        ...options,
        batch: Math.min(options.batch, largest),
      }
      const measured = async (hw: Headwater, server: Server | undefined) => {
        const basin = hw.basin(name.basin, { autoCreate: false })
        if (given === undefined) await hw.createBasin(name.basin)
        try {
          await basin.createStream(name.stream)
          await measure(streamOf(hw, name), load, context)
        } finally {
          const made = given === undefined ? basin : basin.stream(name.stream)
          await made.delete().catch((error: Error) => {
            context.printError(`Not removed: ${nameText(name)}: ${printable(error.message)}`)
          })
          if (given === undefined && server === undefined) await untilDeleted(hw, name.basin, context.clock)
        }
      }
      // Requests outlive Ctrl+C: what was created has to be removed.
      return withHeadwater(options, context, measured, { mustExist: false, signal: undefined })
    })

/** Measures, and prints what the command line of the protocol prints. */
async function measure(
  stream: Stream,
  load: Record<'size' | 'batch' | 'duration' | 'targetMibps' | 'catchupDelay', number>,
  context: CliContext,
): Promise<void> {
  const { now, clock, print } = context
  const signal = context.stopSignal()
  const { size, batch, duration, targetMibps } = load
  const startedAt = now()
  /** The time at which each append was sent. */
  const sentAt: number[] = []
  const ackMs: number[] = []
  const e2eMs: number[] = []
  /** How many records are written; known when the last append is sent. */
  let total = Infinity

  const report = (label: string, from: number, records: number) => {
    const seconds = (now() - from) / 1000
    const mibps = (records * size) / MIB / seconds
    const rates = `${mibps.toFixed(2)} MiB/s, ${(records / seconds).toFixed(0)} records/s`
    print(`${label}: ${rates} (${records * size} bytes, ${records} records in ${seconds.toFixed(2)}s)`)
  }

  const write = async () => {
    const records = Array.from({ length: batch }, () => randomBytes(size))
    const session = await stream.appendSession({ signal })
    const bytesPerMs = (targetMibps * MIB) / 1000
    while (total === Infinity) {
      const early = (sentAt.length * batch * size) / bytesPerMs - (now() - startedAt)
      if (early > 0) await delay(early, clock, signal)
      signal.throwIfAborted()
      const at = now()
      sentAt.push(at)
      if (at - startedAt >= duration) total = sentAt.length * batch
      // Waits while many appends are in flight. Closing the session reports a failure.
      const ticket = await session.submit(records)
      ticket.ack().then(
        () => ackMs.push(now() - at),
        () => {},
      )
    }
    await session.close()
    report('Write', startedAt, total)
  }

  const read = async (label: string, from: number, latencies: number[]) => {
    let count = 0
    for await (const { records } of stream.follow({ seqNum: 0 }, { as: 'bytes', signal }).batches()) {
      for (let i = Math.floor(count / batch); (i + 1) * batch <= count + records.length; i++) {
        latencies.push(now() - sentAt[i]!)
      }
      count += records.length
      if (count >= total) break
    }
    report(label, from, count)
  }

  await Promise.all([write(), read('Read', startedAt, e2eMs)])
  await delay(load.catchupDelay, clock, signal)
  await read('Catchup', now(), [])
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
