import { randomBytes } from 'node:crypto'
import type { Stream } from '../../../src/index.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import { integerArgument, parseArguments } from '../arguments.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { createMissing } from '../create-missing.ts'
import { CliError } from '../errors.ts'
import { table } from '../output.ts'
import { bytesText, countText, type ProgressBar, progressBar } from '../progress.ts'
import { NAME_NOTES, nameText, parseResourceName, streamOf } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withHeadwater } from '../target.ts'

const DEFAULT_BASIN = 'headwater-bench'
const BYTES_MAX = BATCH_METERED_BYTES_MAX - RECORD_METERED_BYTES

const DEFINITIONS = {
  basin: {
    type: 'positional',
    required: false,
    description: `BASIN of the streams. Default: ${DEFAULT_BASIN}`,
  },
  records: { type: 'string', default: '100000', description: 'Records to append and read' },
  size: { type: 'string', default: '100', description: 'Bytes of each record' },
  batch: { type: 'string', default: '1000', description: 'Records of each append' },
  json: { type: 'boolean', default: false, description: 'Print the results as JSON' },
  quiet: { type: 'boolean', default: false, description: 'No progress bar' },
  ...TARGET_DEFINITIONS,
} as const

function parse(args: readonly string[], { env }: CliContext) {
  const parsed = parseArguments(args, DEFINITIONS, 'bench')
  const name = parseResourceName(parsed.basin ?? DEFAULT_BASIN, env)
  if (name.stream !== undefined)
    throw new CliError(2, 'BASIN must not name a stream; `bench` creates its own')
  const records = integerArgument(parsed.records, '`--records`')
  const size = integerArgument(parsed.size, '`--size`', BYTES_MAX)
  const batch = integerArgument(parsed.batch, '`--batch`', BATCH_RECORDS_MAX)
  if (records === 0) throw new CliError(2, '`--records` must be at least 1')
  const batchMax = Math.max(
    1,
    Math.min(batch, Math.floor(BATCH_METERED_BYTES_MAX / (size + RECORD_METERED_BYTES))),
  )
  return {
    basin: name.basin,
    load: { records, size, batch: batchMax },
    json: parsed.json,
    quiet: parsed.quiet,
    target: parseTarget(parsed, env),
  }
}

interface Load {
  readonly records: number
  readonly size: number
  /** Records of an append, at most 1 MiB metered. */
  readonly batch: number
}

export const BENCH = command({
  name: 'bench',
  description: 'Measure how fast a storage or a server appends, reads and follows',
  notes: [
    'Appends to a new stream, reads it, then measures how long a follower waits for a record. Deletes the',
    'stream afterwards. Several appends are in flight at a time.',
    'Use --storage memory for the engine alone.',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  async run({ basin, load, json, quiet, target }, context) {
    const name = { basin, stream: `bench/${randomBytes(6).toString('hex')}` }
    const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Measuring')
    const results = await withHeadwater({ target, mustExist: false }, context, async (hw, { signal }) => {
      await createMissing(hw, name, { create: true, report: () => {} })
      const stream = streamOf(hw, name)
      try {
        return await measure({ stream, signal, load, bar, now: context.now })
      } finally {
        bar.stop()
        // A stopped command sends no more requests.
        if (!signal.aborted) await stream.delete()
        else context.printError(`Not deleted: ${nameText(name)}`)
      }
    })
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
  const session = await stream.appendSession()
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
