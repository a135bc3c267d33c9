import { open } from '../../src/index.ts'
import { createHandler } from '../http/index.ts'
import { memory } from '../storage/memory/index.ts'
import type { OpenService, StorageName } from './cli-context.ts'

const STORAGES = { memory: () => memory() } satisfies Record<StorageName, unknown>

/** The engine and the handler that the command serves. The handler asks for no token. */
export const openService: OpenService = async ({ storage }) => {
  const hw = await open({ storage: STORAGES[storage]() })
  return { handler: createHandler(hw, { open: true }), close: () => hw.close() }
}
