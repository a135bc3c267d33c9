import { compare, timed } from '../../harness/compare.ts'
import { type Row, speedRow } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { bodyOf } from '../harness/records.ts'
import { keyOf, openLevel } from '../rivals/level.ts'

const WRITERS = 64
const APPENDS_EACH = 500

/** Each writer has its own stream and awaits every append: what can be made durable together is found by whoever makes it durable. */
export async function manyWriters(bench: Bench): Promise<Row[]> {
  const each = scaled(APPENDS_EACH, bench)
  const { scratch, rounds } = bench
  const { level } = await compare(rounds, () => scratch.during((directory) => append(directory, each)), {
    level: () => scratch.during((directory) => put(directory, each)),
  })
  const against = '`classic-level`, 64 concurrent puts with `sync`'
  const count = each * WRITERS
  return [
    speedRow('64 writers on 64 streams, 1 KiB an append', against, level, 4, { each: 'an append', count }),
  ]
}

async function append(directory: string, each: number): Promise<number> {
  const headwater = await openHeadwater(directory)
  const streams = Array.from({ length: WRITERS }, (_, writer) => streamNumber(headwater, writer))
  await Promise.all(streams.map((stream) => stream.append(bodyOf(0))))
  const time = await timed(() =>
    atOnce(async (writer) => {
      for (let index = 0; index < each; index++) await streams[writer]!.append(bodyOf(index))
    }),
  )
  await headwater.close()
  return time
}

async function put(directory: string, each: number): Promise<number> {
  const level = await openLevel(directory)
  const putOne = (writer: number, seqNum: number): Promise<void> =>
    level.put(keyOf(writer, seqNum), bodyOf(seqNum), { sync: true })
  await atOnce((writer) => putOne(writer, 0))
  const time = await timed(() =>
    atOnce(async (writer) => {
      for (let index = 1; index <= each; index++) await putOne(writer, index)
    }),
  )
  await level.close()
  return time
}

async function atOnce(work: (writer: number) => Promise<void>): Promise<void> {
  await Promise.all(Array.from({ length: WRITERS }, (_, writer) => work(writer)))
}
