import { median } from '../../harness/compare.ts'
import { boundRow, type Row, round } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { type Opening, openInChild } from '../harness/open-in-child.ts'
import { bodiesFrom } from '../harness/records.ts'

const STREAMS = 10_000
const RECORDS = 1_000_000
const FEW_RECORDS = 1_000
const MANY_STREAMS = 100_000
const MANY_STREAMS_EACH = 3
/** Streams that are filled at the same time: what they append is made durable together. */
const AT_ONCE = 256
const MIB = 1_048_576

/** What opening costs depends on how many streams there are, and hardly on what they hold. */
export async function opening(bench: Bench): Promise<Row[]> {
  const streams = scaled(STREAMS, bench)
  const [records, fewRecords] = [scaled(RECORDS, bench), scaled(FEW_RECORDS, bench)]
  const many = await openings(bench, streams, (stream) => shareOf(records, streams, stream))
  const few = await openings(bench, streams, (stream) => shareOf(fewRecords, streams, stream))
  const alone = await openings(bench, fewRecords, () => 1)
  const named = (count: number): string => count.toLocaleString('en')
  const work = `open ${named(records)} records in ${named(streams)} streams`
  const against = `the same with ${named(fewRecords)} records`
  const inFewer = `${named(fewRecords)} records in ${named(fewRecords)} streams: ${figuresOf(alone)}`
  const figures = `${figuresOf(many)}; ${figuresOf(few)}; ${inFewer}`
  return [
    boundRow(`${work}, time`, against, many.wallMs / few.wallMs, { below: 5, unit: 'times', figures }),
    boundRow(`${work}, memory`, against, many.rssBytes / few.rssBytes, {
      below: 5,
      unit: 'times',
      figures: '',
    }),
  ]
}

export async function openingManyStreams(bench: Bench): Promise<Row[]> {
  const streams = scaled(MANY_STREAMS, bench)
  const opened = await openings(bench, streams, () => MANY_STREAMS_EACH)
  const work = `open ${streams.toLocaleString('en')} streams with ${MANY_STREAMS_EACH} records each`
  const figures = figuresOf(opened)
  return [
    boundRow(`${work}, CPU`, '', opened.cpuMs / 1000, { below: 2, unit: 's', figures }),
    boundRow(`${work}, memory`, '', opened.rssBytes / MIB, { below: 200, unit: 'MiB', figures: '' }),
  ]
}

/** Medians of several openings of one directory, each in a process of its own. */
async function openings(
  { scratch, rounds }: Bench,
  streams: number,
  recordsOf: (stream: number) => number,
): Promise<Opening> {
  return scratch.during(async (directory) => {
    await fill(directory, streams, recordsOf)
    const all: Opening[] = []
    for (let i = 0; i < rounds; i++) all.push(await openInChild(directory))
    const medianOf = (member: keyof Opening): number => median(all.map((one) => one[member]))
    return { wallMs: medianOf('wallMs'), cpuMs: medianOf('cpuMs'), rssBytes: medianOf('rssBytes') }
  })
}

async function fill(
  directory: string,
  streams: number,
  recordsOf: (stream: number) => number,
): Promise<void> {
  const headwater = await openHeadwater(directory)
  await headwater.ensureBasin('bench')
  let next = 0
  const fillStreams = async (): Promise<void> => {
    for (let number = next++; number < streams; number = next++) {
      const records = recordsOf(number)
      if (records > 0) await streamNumber(headwater, number).append(bodiesFrom(number, records))
      else await headwater.basin('bench').createStream(`streams/${number}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, fillStreams))
  await headwater.close()
}

/** Of `records` that are spread evenly. */
function shareOf(records: number, streams: number, stream: number): number {
  return Math.floor(((stream + 1) * records) / streams) - Math.floor((stream * records) / streams)
}

function figuresOf({ wallMs, cpuMs, rssBytes }: Opening): string {
  return `${round(wallMs)} ms (${round(cpuMs)} ms of CPU), ${round(rssBytes / MIB)} MiB`
}
