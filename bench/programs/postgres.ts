import { Pool } from 'pg'
import { Cluster } from '../../test/storage/postgres/cluster.ts'
import { Child } from '../harness/child.ts'
import { openPostgres, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodiesFrom, bodyOf } from '../harness/records.ts'

/** Concurrent writers on one stream, and connections of the bare loop. */
const WRITERS = 64
const BATCH_RECORDS = 1_000
const THIS_PROGRAM = 'postgres'

interface ProcessParams {
  readonly connectionString: string
  readonly number: number
}

/** Rows of a page of the bare read: about as much as one read of the storage. */
const PAGE_ROWS = 8

host({
  headwater: () =>
    onCluster(async (connectionString) => {
      const hw = await openPostgres(connectionString)
      const stream = streamNumber(hw, 0)
      await stream.append('')
      return {
        async turn(count) {
          for (let i = 0; i < count; i++) await stream.append(bodyOf(i))
        },
        close: () => hw.close(),
      }
    }),
  bare: () =>
    onTable(1, (insert) => ({
      async turn(count) {
        for (let i = 0; i < count; i++) await insert(bodyOf(i))
      },
    })),
  'headwater writers': () =>
    onCluster(async (connectionString) => {
      const hw = await openPostgres(connectionString)
      const stream = streamNumber(hw, 0)
      await stream.append('')
      return {
        turn: (count) => atOnce(count, (i) => stream.append(bodyOf(i))),
        close: () => hw.close(),
      }
    }),
  'bare writers': () =>
    onTable(WRITERS, (insert) => ({ turn: (count) => atOnce(count, (i) => insert(bodyOf(i))) })),
  /** What sharing each sync among the waiting appends permits. */
  'bare groups': () =>
    onTable(1, (insert) => ({
      async turn(count) {
        for (let first = 0; first < count; first += WRITERS) await insert(...bodiesFrom(first, WRITERS))
        return Math.ceil(count / WRITERS) * WRITERS
      },
    })),
  // Serves one of the processes below.
  'headwater process': async ({ connectionString, number }: ProcessParams) => {
    const hw = await openPostgres(connectionString)
    const stream = streamNumber(hw, number)
    await stream.append('')
    return {
      turn: (count) => atOnce(count, (i) => stream.append(bodyOf(i))),
      close: () => hw.close(),
    }
  },
  'headwater processes': ({ processes }: { readonly processes: number }) =>
    onCluster(async (connectionString) => {
      const children = Array.from(
        { length: processes },
        () => new Child(THIS_PROGRAM, process.env.HEADWATER_DIST!),
      )
      await Promise.all(
        children.map((child, number) => child.prepare('headwater process', { connectionString, number })),
      )
      return {
        async turn(count) {
          const each = Math.ceil(count / processes)
          await Promise.all(children.map((child) => child.turn(each)))
          return each * processes
        },
        close: () => Promise.all(children.map((child) => child.close())),
      }
    }),
  'headwater reading': ({ size }: { readonly size: number }) =>
    onCluster(async (connectionString) => {
      const hw = await openPostgres(connectionString)
      const stream = streamNumber(hw, 0)
      for (let i = 0; i < size; i += BATCH_RECORDS) await stream.append(bodiesFrom(i, BATCH_RECORDS))
      return {
        async turn() {
          let records = 0
          const session = stream.read({ seqNum: 0, count: size }, { as: 'bytes' })
          for await (const batch of session.batches()) records += batch.records.length
          return records
        },
        close: () => hw.close(),
      }
    }),
  'bare reading': ({ size }: { readonly size: number }) =>
    onCluster(async (connectionString) => {
      const hw = await openPostgres(connectionString)
      const stream = streamNumber(hw, 0)
      for (let i = 0; i < size; i += BATCH_RECORDS) await stream.append(bodiesFrom(i, BATCH_RECORDS))
      const pool = new Pool({ connectionString })
      const page = `SELECT end_seq_num, data FROM headwater.blocks
        WHERE end_seq_num > $1 ORDER BY log, end_seq_num LIMIT ${PAGE_ROWS}`
      return {
        async turn() {
          let end = 0
          for (;;) {
            const { rows } = await pool.query(page, [end])
            if (rows.length === 0) return size
            end = Number(rows.at(-1)!.end_seq_num)
          }
        },
        close: async () => {
          await pool.end()
          await hw.close()
        },
      }
    }),
})

/** A cluster that syncs to the disk, as in production. */
async function onCluster(prepare: (connectionString: string) => Promise<Prepared>): Promise<Prepared> {
  const cluster = await Cluster.start({ fsync: true })
  const prepared = await prepare(cluster.connectionString)
  return {
    ...prepared,
    async close() {
      await prepared.close?.()
      await cluster.dispose()
    },
  }
}

/** A row of the same bytes for each append, by the same driver and a pool. */
function onTable(
  connections: number,
  prepare: (insert: (...bodies: readonly Uint8Array[]) => Promise<unknown>) => Prepared,
): Promise<Prepared> {
  return onCluster(async (connectionString) => {
    const pool = new Pool({ connectionString, max: connections })
    await pool.query('CREATE TABLE bare (id bigint PRIMARY KEY, data bytea NOT NULL)')
    let id = 0
    const insert = (...bodies: readonly Uint8Array[]) => {
      const rows = bodies.map((_, index) => `($${2 * index + 1}, $${2 * index + 2})`)
      return pool.query(
        `INSERT INTO bare VALUES ${rows.join()}`,
        bodies.flatMap((body) => [id++, body]),
      )
    }
    return { ...prepare(insert), close: () => pool.end() }
  })
}

async function atOnce(count: number, append: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0
  await Promise.all(
    Array.from({ length: WRITERS }, async () => {
      while (next < count) await append(next++)
    }),
  )
}
