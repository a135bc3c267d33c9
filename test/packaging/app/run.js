import { open } from 'headwater'
import { scenario } from './scenario.js'
import { storages } from './storages.js'

/** What the scenario tells, by the name of the storage. */
export async function run() {
  const told = {}
  for (const [name, newStorage] of Object.entries(storages)) told[name] = await scenario(open, newStorage())
  return told
}
