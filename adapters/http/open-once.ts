import type { Engine } from '../../src/index.ts'
import { invalid } from '../../src/model/errors.ts'
import { onAbort } from '../../src/runtime/abort.ts'

/**
 * Returns a function that opens the engine at its first call, and resolves to the same engine at each further
 * one. The next call tries again if opening failed or the engine was closed, so a failure is not kept: a
 * directory that is still locked by the previous deployment, or a database that is down. Throws `invalid`
 * unless it gets a function.
 *
 * ```ts
 * const engine = openOnce(() => open({ storage: memory() }))
 * const handler = createHandler(engine)
 * const chat = (await engine()).basin('my-app').stream('chat')
 * ```
 */
export function openOnce(openEngine: () => Promise<Engine>): () => Promise<Engine> {
  assertOpens(openEngine, 'openOnce')
  let opened: Promise<Engine> | undefined
  return () => {
    if (opened !== undefined) return opened
    const opening = Promise.resolve().then(openEngine)
    const forget = () => {
      if (opened === opening) opened = undefined
    }
    opened = opening
    opening.then((hw) => onAbort(hw.closing, forget)).catch(forget)
    return opening
  }
}

/** Throws `invalid` unless the value is a function. `name` is that of the function that needs it. */
export function assertOpens(openEngine: unknown, name: string): void {
  if (typeof openEngine === 'function') return
  throw invalid(`${name} needs a function: \`${name}(() => open({ storage }))\``, 'openEngine')
}
