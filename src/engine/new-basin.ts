import type { BasinConfig } from '../model/config.ts'
import type { CatalogChange } from '../storage/contract.ts'
import type { EngineContext } from './context.ts'
import { defaultLocation } from './default-location.ts'
import { asJson, type BasinDocument } from './documents.ts'

/** Where a basin is to be: at the default location when neither is said. */
export interface Place {
  /** One of the engine's locations: `aws:us-east-1`, unless it was opened with others. */
  readonly scope?: string | undefined
  /** The same, as newer clients call it. */
  readonly location?: string | null | undefined
}

/** A basin that is to come to be. */
export async function newBasin(
  engine: EngineContext,
  name: string,
  config: BasinConfig,
  { scope, location }: Place = {},
  creationKey: string | null = null,
): Promise<BasinDocument> {
  return {
    name,
    scope: scope ?? location ?? (await defaultLocation(engine)).name,
    location: location ?? null,
    createdAt: engine.settings.clock.now(),
    deletedAt: null,
    config,
    creationKey,
  }
}

export function putBasin(document: BasinDocument, expect: number | null): CatalogChange {
  return { kind: 'put', collection: 'basins', key: document.name, value: asJson(document), expect }
}
