import { HeadwaterError } from '../../../src/model/errors.ts'
import type { Endpoint } from '../router.ts'

/** 200 `OK` when the engine can read its storage, else 503 with the reason (wire-behaviour.md 1.3). */
export const health: Endpoint = async (context, owner) => {
  const headers = { 'content-type': 'text/plain; charset=utf-8' }
  try {
    await owner.checkStorage()
    return { status: 200, headers, body: 'OK' }
  } catch (error) {
    context.report(error)
    return { status: 503, headers, body: HeadwaterError.is(error) ? error.message : 'internal error' }
  }
}
