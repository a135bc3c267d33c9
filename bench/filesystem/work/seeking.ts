import type { Stream } from '../../../src/index.ts'
import { compare, timed } from '../../harness/compare.ts'
import { type Row, speedRow } from '../../harness/rows.ts'
import { type Bench, scaled } from '../harness/bench.ts'
import { timestampOf } from '../harness/records.ts'
import type { SqliteLog } from '../rivals/sqlite.ts'

const SEEKS = 2_000
const PAGE_RECORDS = 1_000
/** Visits all of any million in an order without pattern: it is prime. */
const STRIDE = 611_953

interface Store {
  readonly stream: Stream
  readonly sqlite: SqliteLog
  readonly count: number
}

/** From a time to the first record at or after it, all over the store; and, for information, to the page that a replay begins with. */
export async function seeks(bench: Bench, store: Store): Promise<Row[]> {
  const count = scaled(SEEKS, bench)
  const work = `seek by timestamp in ${store.count.toLocaleString('en')} records`
  const against = '`better-sqlite3` with an index'
  const one = await seeking(bench, store, count, 1)
  const page = await seeking(bench, store, Math.ceil(count / 10), PAGE_RECORDS)
  return [
    speedRow(`${work}, first record`, against, one, 1, { each: 'a seek', count }),
    speedRow(`${work}, first 1,000`, against, page, undefined, {
      each: 'a seek',
      count: Math.ceil(count / 10),
    }),
  ]
}

async function seeking(bench: Bench, { stream, sqlite, count }: Store, seeks: number, records: number) {
  const { rival } = await compare(
    bench.rounds,
    () =>
      timed(async () => {
        for (let index = 0; index < seeks; index++) {
          const target = (index * STRIDE) % count
          const batch = await stream.readBatch({ timestamp: timestampOf(target), count: records })
          expectFirst(batch.records[0]?.seqNum, target)
        }
      }),
    {
      rival: () =>
        timed(async () => {
          for (let index = 0; index < seeks; index++) {
            const target = (index * STRIDE) % count
            expectFirst(sqlite.pageFrom(timestampOf(target), records)[0]?.[0], target)
          }
        }),
    },
  )
  return rival
}

function expectFirst(found: number | undefined, wanted: number): void {
  if (found !== wanted) throw new Error(`record ${found} was found, not ${wanted}`)
}
