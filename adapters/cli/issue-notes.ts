import { GROUP_OF, permitsOperation } from '../../src/core/permission.ts'
import { type AccessTokenInput, OPERATIONS } from '../../src/index.ts'
import { accessScope } from '../../src/model/access.ts'
import { dateTimeText } from '../../src/wire/date-time.ts'
import { printable } from './printable.ts'
import type { TokenPlace } from './token-place.ts'

/** What to tell of a token that was issued, and what may not be meant so. */
export function issueNotes(input: AccessTokenInput, place: TokenPlace): string[] {
  return [
    `Access token ${printable(input.id)} is issued: ${expiryNote(input, place)}. It is shown only now`,
    ...unreachedNotes(input),
  ]
}

function expiryNote({ expiresAt }: AccessTokenInput, place: TokenPlace): string {
  if (expiresAt != null) return `valid until ${dateTimeText(expiresAt)}`
  return 'directory' in place ? 'valid until it is revoked' : 'valid as long as the token that issued it'
}

/** Operations on basins and streams of which the scope matches none are a legal scope, but hardly a meant one. */
function unreachedNotes(input: AccessTokenInput): string[] {
  const scope = accessScope(input.scope)
  const levels = new Set(
    OPERATIONS.filter((operation) => permitsOperation(scope, operation)).map(
      (operation) => GROUP_OF[operation][0],
    ),
  )
  const notes: string[] = []
  if ((levels.has('basin') || levels.has('stream')) && scope.basins === null) {
    notes.push('Note: it reaches no basin, for want of --basins')
  }
  if (levels.has('stream') && scope.streams === null) {
    notes.push('Note: it reaches no stream, for want of --streams')
  }
  return notes
}
