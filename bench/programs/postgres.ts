import { Pool } from 'pg'
import { Cluster } from '../../test/storage/postgres/cluster.ts'
import { openPostgres, streamNumber } from '../harness/headwater.ts'
import { host, type Prepared } from '../harness/host.ts'
import { bodyOf } from '../harness/records.ts'

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
    onTable((insert) => ({
      async turn(count) {
        for (let i = 0; i < count; i++) await insert(bodyOf(i))
      },
    })),
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
function onTable(prepare: (insert: (body: Uint8Array) => Promise<unknown>) => Prepared): Promise<Prepared> {
  return onCluster(async (connectionString) => {
    const pool = new Pool({ connectionString, max: 1 })
    await pool.query('CREATE TABLE bare (id bigint PRIMARY KEY, data bytea NOT NULL)')
    let id = 0
    const insert = (body: Uint8Array) => pool.query('INSERT INTO bare VALUES ($1, $2)', [id++, body])
    return { ...prepare(insert), close: () => pool.end() }
  })
}
