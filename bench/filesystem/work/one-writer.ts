import { compare, timed } from '../../harness/compare.ts'
import { type Row, speedRow } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { openHeadwater, streamNumber } from '../harness/headwater.ts'
import { bodyOf } from '../harness/records.ts'
import { writeAndSync } from '../rivals/bare-file.ts'

const APPENDS = 5_000

/** One record an append, each awaited, against the least that could make the same bytes durable. */
export async function oneWriter(bench: Bench): Promise<Row[]> {
  const count = scaled(APPENDS, bench)
  const { scratch, rounds } = bench
  const { bare } = await compare(rounds, () => scratch.during((directory) => append(directory, count)), {
    bare: () => scratch.during((directory) => writeAndSync(directory, count, bodyOf(0))),
  })
  const against = 'a bare loop of `FileHandle.write` + `datasync`'
  return [speedRow('one writer, 1 KiB an append', against, bare, 0.7, { each: 'an append', count })]
}

async function append(directory: string, count: number): Promise<number> {
  const headwater = await openHeadwater(directory)
  const stream = streamNumber(headwater, 0)
  // The first one makes basin, stream and journal.
  await stream.append(bodyOf(0))
  const time = await timed(async () => {
    for (let index = 0; index < count; index++) await stream.append(bodyOf(index))
  })
  await headwater.close()
  return time
}
