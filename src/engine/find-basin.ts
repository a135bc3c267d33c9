import { HeadwaterError, refuse } from '../model/errors.ts'
import { basinNameProblem } from '../model/names.ts'
import type { Versioned } from './catalog.ts'
import type { EngineContext } from './context.ts'
import type { BasinDocument } from './documents.ts'
import { basinDeletionPending } from './existence-errors.ts'

/** The basin, or 404 `basin_not_found`. */
export async function existingBasin(
  { catalog }: EngineContext,
  name: string,
): Promise<Versioned<BasinDocument>> {
  refuse(basinNameProblem(name), 'basin')
  const basin = await catalog.basin(name)
  if (basin === undefined) throw new HeadwaterError('basin_not_found', `basin \`${name}\` not found`)
  return basin
}

/** The basin, or 404 `basin_not_found`, or 409 `basin_deletion_pending`. */
export async function activeBasin(engine: EngineContext, name: string): Promise<Versioned<BasinDocument>> {
  const basin = await existingBasin(engine, name)
  if (basin.value.deletedAt !== null) throw basinDeletionPending(name)
  return basin
}
