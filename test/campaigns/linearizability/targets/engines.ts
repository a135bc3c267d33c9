import { type Engine, open } from '../../../../src/index.ts'
import type { Storage } from '../../../../src/storage/index.ts'
import { clientsOf } from '../clients.ts'
import type { Target } from '../record-history.ts'

/** Engines of this process, or of a tab, on one storage. */
export async function openEngines(
  storage: Storage,
  count: number,
  dispose = async () => {},
): Promise<Target> {
  const engines: Engine[] = []
  for (let i = 0; i < count; i++) engines.push(await open({ storage }))
  const { connect, endSessions } = clientsOf(count, (index) => engines[index]!)
  return {
    connect,
    async close() {
      await endSessions()
      for (const engine of engines) await engine.close()
      await dispose()
    },
  }
}
