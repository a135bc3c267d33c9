import { randomBytes } from 'node:crypto'
import type { Engine } from '../../../src/index.ts'
import { BATCH_METERED_BYTES_MAX, BATCH_RECORDS_MAX } from '../../../src/model/limits.ts'
import { RECORD_METERED_BYTES } from '../../../src/model/record.ts'
import { appendRecords } from '../append-records.ts'
import { integerArgument, parseArguments } from '../arguments.ts'
import type { Client } from '../client.ts'
import { command } from '../command.ts'
import type { CliContext } from '../context.ts'
import { createMissing, serviceCreator } from '../create-missing.ts'
import { CliError } from '../errors.ts'
import { table } from '../output.ts'
import { readRecords } from '../print-records.ts'
import { bytesText, countText, type ProgressBar, progressBar } from '../progress.ts'
import { NAME_NOTES, nameText, parseResourceName, resourcePath, type StreamName } from '../stream-name.ts'
import { parseTarget, TARGET_DEFINITIONS, TARGET_NOTES, withClient } from '../target.ts'

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
    'stream afterwards. A storage gets several appends at a time, a server one after the other.',
    'Use --storage memory for the engine alone.',
    ...NAME_NOTES,
    ...TARGET_NOTES,
  ],
  definitions: DEFINITIONS,
  parse,
  async run({ basin, load, json, quiet, target }, context) {
    const name = { basin, stream: `bench/${randomBytes(6).toString('hex')}` }
    const bar = progressBar(quiet ? { ...context, terminal: undefined } : context, 'Measuring')
    const results = await withClient({ target, mustExist: false }, context, async (client, engine) => {
      await createMissing(serviceCreator(client, name), name, { create: true, report: () => {} })
      try {
        return await measure({ client, engine, name, load, bar, now: context.now })
      } finally {
        bar.stop()
        const call = { method: 'DELETE', path: resourcePath(name), basin } as const
        // A stopped command sends no more requests.
        if (!client.signal.aborted) await client.send(call)
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
  readonly client: Client
  readonly engine: Engine | undefined
  readonly name: StreamName
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

/** Appends of a storage are pipelined, at most this many at a time. */
const IN_FLIGHT_MAX = 8

async function measureAppends({ client, engine, name, load, bar, now }: Bench) {
  const body = randomBytes(load.size)
  const stream = engine?.basin(name.basin).stream(name.stream)
  const times: number[] = []
  const pending = new Set<Promise<void>>()
  const startedAt = now()
  for (let done = 0; done < load.records; ) {
    const records = new Array<Uint8Array>(Math.min(load.batch, load.records - done)).fill(body)
    done += records.length
    const sentAt = now()
    const acked = stream === undefined ? appendRecords(client, name, records) : stream.append(records)
    const timed = acked.then(() => {
      times.push(now() - sentAt)
      pending.delete(timed)
    })
    pending.add(timed)
    if (pending.size >= (stream === undefined ? 1 : IN_FLIGHT_MAX)) await Promise.race(pending)
    client.signal.throwIfAborted()
    bar.update(done * load.size, load.records * load.size, 'append')
  }
  await Promise.all(pending)
  return { seconds: (now() - startedAt) / 1000, ...percentiles(times) }
}

async function measureReads({ client, name, load, bar, now }: Bench) {
  const startedAt = now()
  let read = 0
  for await (const records of readRecords({ client, name, query: { seq_num: 0, count: load.records } })) {
    read += records.length
    bar.update(read * load.size, load.records * load.size, 'read')
  }
  if (read !== load.records) throw new CliError(1, `read ${countText(read, 'record')} of ${load.records}`)
  return { seconds: (now() - startedAt) / 1000 }
}

const FOLLOWED = 50

/** Appends one record at a time, each when the follower has received the one before. */
async function measureFollowing({ client, name, load, now }: Bench) {
  const query = { seq_num: load.records, count: FOLLOWED, wait: 60 }
  const times: number[] = []
  const append = () => appendRecords(client, name, ['x'])
  let sentAt = now()
  let sent = append()
  for await (const records of readRecords({ client, name, query })) {
    for (const _ of records) times.push(now() - sentAt)
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
