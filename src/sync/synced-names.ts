import { streamNameProblem } from '../model/names.ts'
import { outboxNameProblem } from './outbox-name.ts'

/** Streams that sync keeps beside the app's: outboxes, earlier history, snapshots of folds, recent use. */
const INTERNAL = ['.outbox/', '.earlier/', '.fold/', '.basin/']

/** Returns the problem with the name of a synced stream below a prefix, or undefined. */
export function syncedNameProblem(name: string, prefix: string): string | undefined {
  const problem = streamNameProblem(name)
  if (problem !== undefined) return problem
  if (!name.startsWith(prefix)) return `the name of the stream must begin with ${JSON.stringify(prefix)}`
  if (isInternalName(name)) return 'the name of the stream is one that sync uses itself'
  return outboxNameProblem(name)
}

/** Returns whether a name, or the beginning of one, belongs to streams that sync keeps beside the app's. */
export function isInternalName(name: string): boolean {
  return INTERNAL.some((prefix) => name.startsWith(prefix))
}
