import { open } from '../../src/index.ts'
import { createHandler } from '../http/index.ts'
import { memory } from '../storage/memory/index.ts'
import type { OpenService, StorageName } from './cli-context.ts'

const STORAGES = { memory: () => memory() } satisfies Record<StorageName, unknown>

/** The engine and the handler that the command serves. The handler asks for no token. */
export const openService: OpenService = async ({ storage, onError }) => {
  const hw = await open({ storage: STORAGES[storage](), onBackgroundError: onError })
  return { handler: createHandler(hw, { open: true, onError }), close: () => hw.close() }
}
