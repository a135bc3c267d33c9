import { randomBytes } from 'node:crypto'
import { type Basin, type Headwater, HeadwaterError, type Stream } from '../../../src/index.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import { command, flag, integerArgument, positional, withValue } from '../command.ts'
import type { CliContext } from '../context.ts'
import { expectedFailure } from '../create-missing.ts'
import { CliError, printable } from '../errors.ts'
import { table } from '../output.ts'
import { bytesText, countText, type ProgressBar, progressBar } from '../progress.ts'
import { nameText, parseResourceName, type StreamName, streamOf } from '../stream-name.ts'
import { type Connected, parseTarget, TARGET_DEFINITIONS, withHeadwater } from '../target.ts'
import { untilDeleted } from './delete.ts'

const BYTES_MAX = BATCH_METERED_BYTES_MAX - RECORD_METERED_BYTES

interface Load {
  readonly records: number
  readonly size: number
  /** Records of an append, at most 1 MiB metered. */
  readonly batch: number
}

export const BENCH = command({
  description: 'Measure how fast a storage or a server appends, reads and follows',
  examples: [
    'headwater bench --storage memory',
    'headwater bench --storage ./data --size 1000 --batch 100',
    'headwater bench --url https://streams.example.com --records 10000 --json',
  ],
  notes: [
    'Appends to a new stream, reads it, then measures how long a follower waits for a record. Several',
    'appends are in flight at a time. Removes the stream afterwards, and the basin if it created it, also',
    'after a failure and after Ctrl+C. --storage memory measures the engine alone.',
  ],
  definitions: {
    basin: positional('BASIN of the stream. Default: a new one', { required: false }),
    records: withValue('N', 'Records to append and read', { default: '100000' }),
    size: withValue('N', 'Bytes of each record', { default: '100' }),
    batch: withValue('N', 'Records of each append', { default: '1000' }),
    json: flag('Print the results as JSON'),
    quiet: flag('No progress bar'),
    ...TARGET_DEFINITIONS,
  },
  parse(values, { env }) {
    const random = randomBytes(6).toString('hex')
    const name = parseResourceName(values.basin ?? `headwater-bench-${random}`, env)
    if (name.stream !== undefined)
      throw new CliError(2, 'BASIN must not name a stream; `bench` creates its own')
    const records = integerArgument(values.records, '`--records`')
    const size = integerArgument(values.size, '`--size`', BYTES_MAX)
    const batch = integerArgument(values.batch, '`--batch`', BATCH_RECORDS_MAX)
    if (records === 0) throw new CliError(2, '`--records` must be at least 1')
    const batchMax = Math.max(
      1,
      Math.min(batch, Math.floor(BATCH_METERED_BYTES_MAX / (size + RECORD_METERED_BYTES))),
    )
    return {
      name: { basin: name.basin, stream: `bench/${random}` },
      load: { records, size, batch: batchMax },
      json: values.json,
      quiet: values.quiet,
      target: parseTarget(values, env),
    }
  },
  async run({ name, load, json, quiet, target }, context) {
    const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Measuring')
    const measured = async (hw: Headwater, { signal }: Connected) => {
      const basin = hw.basin(name.basin)
      const stream = streamOf(hw, name)
      // A caller who may not create basins may measure in one that exists.
      const refused = await expectedFailure(hw.createBasin(name.basin), [
        'resource_already_exists',
        'permission_denied',
      ])
      try {
        signal.throwIfAborted()
        await basin.createStream(name.stream)
        return await measure({ stream, signal, load, bar, now: context.now })
      } finally {
        bar.stop()
        await remove(refused === undefined ? basin : stream, name, context, async () => {
          // Closing the engine would interrupt the deletion until the storage is opened again.
          if (refused === undefined && target.kind !== 'service') await untilDeleted(hw, name.basin, context)
        })
      }
    }
    // Requests outlive Ctrl+C: the basin has to be removed.
    const options = { signal: undefined } as const
    const results = await withHeadwater({ target, mustExist: false }, context, measured, options)
    if (json) return context.print(JSON.stringify({ ...load, ...results }))
    const { append, read, follow } = results
    for (const line of table([
      [
        'append',
        `${rate(load, append.seconds)}`,
        `p50 ${append.p50_ms} ms, p99 ${append.p99_ms} ms an append`,
      ],
      ['read', `${rate(load, read.seconds)}`, ''],
      ['follow', '', `p50 ${follow.p50_ms} ms, p99 ${follow.p99_ms} ms from append to follower`],
    ]))
      context.print(line)
  },
})

/** Removes what the command has created. A failure is reported: the first error is the one to reject with. */
async function remove(
  created: Basin | Stream,
  name: StreamName,
  { printError }: CliContext,
  settled: () => Promise<void>,
): Promise<void> {
  try {
    await created.delete()
    await settled()
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    if (error.code !== 'stream_not_found')
      printError(`Not removed: ${nameText(name)}: ${printable(error.message)}`)
  }
}

interface Bench {
  readonly stream: Stream
  readonly signal: AbortSignal
  readonly load: Load
  readonly bar: ProgressBar
  readonly now: () => number
}

async function measure(bench: Bench) {
  return {
    append: await measureAppends(bench),
    read: await measureReads(bench),
    follow: await measureFollowing(bench),
  }
}

/** Appends are pipelined, at most this many at a time. */
const IN_FLIGHT_MAX = 8

async function measureAppends({ stream, signal, load, bar, now }: Bench) {
  const body = randomBytes(load.size)
  const session = await stream.appendSession({ signal })
  const times: number[] = []
  const pending = new Set<Promise<void>>()
  const startedAt = now()
  for (let done = 0; done < load.records; ) {
    const records = new Array<Uint8Array>(Math.min(load.batch, load.records - done)).fill(body)
    done += records.length
    const sentAt = now()
    const timed = (await session.submit(records)).ack().then(() => {
      times.push(now() - sentAt)
      pending.delete(timed)
    })
    pending.add(timed)
    // Closing the session reports the failure.
    timed.catch(() => {})
    if (pending.size >= IN_FLIGHT_MAX) await Promise.race(pending)
    signal.throwIfAborted()
    bar.update(done * load.size, load.records * load.size, 'append')
  }
  await session.close()
  return { seconds: (now() - startedAt) / 1000, ...percentiles(times) }
}

async function measureReads({ stream, signal, load, bar, now }: Bench) {
  const startedAt = now()
  let read = 0
  for await (const { records } of stream.read({ count: load.records }, { as: 'bytes', signal }).batches()) {
    read += records.length
    bar.update(read * load.size, load.records * load.size, 'read')
  }
  if (read !== load.records) throw new CliError(1, `read ${countText(read, 'record')} of ${load.records}`)
  return { seconds: (now() - startedAt) / 1000 }
}

const FOLLOWED = 50

/** Appends one record at a time, each when the follower has received the one before. */
async function measureFollowing({ stream, signal, load, now }: Bench) {
  const query = { seqNum: load.records, count: FOLLOWED }
  const times: number[] = []
  const append = () => stream.append('x')
  let sentAt = now()
  let sent = append()
  for await (const _ of stream.follow(query, { as: 'bytes', signal })) {
    times.push(now() - sentAt)
    await sent
    if (times.length >= FOLLOWED) break
    sentAt = now()
    sent = append()
  }
  return percentiles(times)
}

function percentiles(times: readonly number[]) {
  const sorted = [...times].sort((a, b) => a - b)
  const at = (share: number) => Number(sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(2))
  return { p50_ms: at(0.5), p99_ms: at(0.99) }
}

function rate({ records, size }: Load, seconds: number): string {
  const perSecond = Math.round(records / seconds).toLocaleString('en-US')
  return `${perSecond} records/s (${bytesText((records * size) / seconds)}/s)`
}
