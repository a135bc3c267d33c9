import type { Change } from '../changes.ts'
import type { State } from '../state.ts'
import { checkDocument } from './document-check.ts'
import { checkFree } from './free-check.ts'
import { checkAppend } from './head-check.ts'

/** Holds a change to the state that it meets, beyond what applying it needs. Throws `RangeError` when they do not agree. */
export function checkChange(state: State, change: Change): void {
  switch (change.kind) {
    case 'append': {
      const log = state.logsByNumber.get(change.log)
      if (log !== undefined) checkAppend(log, change)
      return
    }
    case 'put':
      if (change.version < state.nextVersion) {
        throw new RangeError(`the version ${change.version} of a document was given before`)
      }
      checkDocument(change)
      return
    case 'delete':
      // The deletion of what there is not is no change.
      if (state.catalog.versionOf(change.collection, change.key) === null) {
        throw new RangeError(`a document of ${change.collection} is deleted that there is not`)
      }
      return
    case 'create-log':
      if (change.log < state.nextLog)
        throw new RangeError(`the number ${change.log} of a log was given before`)
      if (state.logsById.has(change.id)) throw new RangeError(`a log ${change.id} exists`)
      return
    case 'free': {
      const log = state.logsByNumber.get(change.log)
      if (log !== undefined) checkFree(log, change.ranges)
      return
    }
    case 'merge':
      // Not the next number: what was rolled meanwhile has a later one.
      if (state.segments.has(change.segment.number)) {
        throw new RangeError(`the number ${change.segment.number} of a segment was given before`)
      }
      if (change.runs.some(({ run }) => run.segment !== change.segment.number)) {
        throw new RangeError('a merged run is in another segment')
      }
  }
}
