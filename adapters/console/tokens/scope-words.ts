import { permitsOperation } from '../../../src/core/permission.ts'
import type { AccessScope, Operation, ResourceSet } from '../../../src/model/access.ts'

/** The resources that an operation acts on: streams of basins, basins, access tokens, or the account. */
type Subject = 'streams' | 'basins' | 'tokens' | 'account'

/** An operation: what it acts on, and what it does. */
type OperationWords = readonly [subject: Subject, does: string]

/** Every operation (docs/protocol.md "Operations"). */
const OPERATION_WORDS: Readonly<Record<Operation, OperationWords>> = {
  read: ['streams', 'read records'],
  'check-tail': ['streams', 'check the tail'],
  'stream-metrics': ['streams', 'see usage'],
  append: ['streams', 'append records'],
  trim: ['streams', 'trim'],
  fence: ['streams', 'fence'],
  'list-streams': ['streams', 'list them'],
  'get-stream-config': ['streams', 'read the configuration'],
  'create-stream': ['streams', 'create'],
  'delete-stream': ['streams', 'delete'],
  'reconfigure-stream': ['streams', 'change the configuration'],
  'basin-metrics': ['basins', 'see usage'],
  'list-basins': ['basins', 'list them'],
  'get-basin-config': ['basins', 'read the configuration'],
  'create-basin': ['basins', 'create'],
  'delete-basin': ['basins', 'delete'],
  'reconfigure-basin': ['basins', 'change the configuration'],
  'list-access-tokens': ['tokens', 'list them'],
  'issue-access-token': ['tokens', 'issue'],
  'revoke-access-token': ['tokens', 'revoke'],
  'account-metrics': ['account', 'see usage'],
  'list-locations': ['account', 'list locations'],
  'get-default-location': ['account', 'see the default location'],
  'set-default-location': ['account', 'set the default location'],
}

/** The names of all operations, by the kind of resource that they act on. */
export const OPERATION_NAMES = Object.keys(OPERATION_WORDS) as Operation[]

/** The permissions of a scope on one kind of resource. */
export interface ScopeSentence {
  /** `On every stream that begins with “tenant-7/” in the basin “shop”`. */
  readonly where: string
  /** `read records`, `append records`; empty if no resource is in the scope. */
  readonly verbs: readonly string[]
}

/** Returns the permissions of a scope in sentences; empty if it permits nothing. */
export function scopeSentences(scope: AccessScope): ScopeSentence[] {
  return (['streams', 'basins', 'tokens', 'account'] as const).flatMap((subject) => {
    const operations = OPERATION_NAMES.filter(
      (name) => OPERATION_WORDS[name][0] === subject && permitsOperation(scope, name),
    )
    if (operations.length === 0) return []
    const where = whereOf(subject, scope)
    if (where === undefined) return []
    return [{ where, verbs: operations.map((name) => OPERATION_WORDS[name][1]) }]
  })
}

/** Why permitted operations have no effect: no resource is in the scope. */
export function scopeWarnings(scope: AccessScope): string[] {
  const subjects = new Set(
    OPERATION_NAMES.filter((name) => permitsOperation(scope, name)).map((name) => OPERATION_WORDS[name][0]),
  )
  const warnings: string[] = []
  if (subjects.size === 0) warnings.push('No operation is selected: the token would permit nothing.')
  for (const subject of subjects) {
    if (whereOf(subject, scope) === undefined) warnings.push(MISSING[subject])
  }
  return warnings
}

const MISSING: Readonly<Record<Subject, string>> = {
  streams: 'Operations on streams are selected, but no stream or no basin is.',
  basins: 'Operations on basins are selected, but no basin is.',
  tokens: 'Operations on access tokens are selected, but no access token is.',
  account: '',
}

/** A summary on one line: `streams: read records, append records · basins: list them`. */
export function scopeSummary(scope: AccessScope): string {
  const sentences = scopeSentences(scope)
  if (sentences.length === 0) return 'nothing'
  return sentences.map(({ where, verbs }) => `${where}: ${verbs.join(', ')}`).join('. ')
}

function whereOf(subject: Subject, { basins, streams, accessTokens }: AccessScope): string | undefined {
  if (subject === 'account') return 'On the account'
  if (subject === 'tokens') return phrase(accessTokens, 'access token', 'On')
  if (subject === 'basins') return phrase(basins, 'basin', 'On')
  const ofStreams = phrase(streams, 'stream', 'On')
  const ofBasins = phrase(basins, 'basin', 'in')
  return ofStreams === undefined || ofBasins === undefined ? undefined : `${ofStreams} ${ofBasins}`
}

function phrase(set: ResourceSet | null, noun: string, preposition: string): string | undefined {
  if (set === null) return undefined
  if ('exact' in set) return set.exact === '' ? undefined : `${preposition} the ${noun} “${set.exact}”`
  if (set.prefix === '') return `${preposition} every ${noun}`
  return `${preposition} every ${noun} that begins with “${set.prefix}”`
}
