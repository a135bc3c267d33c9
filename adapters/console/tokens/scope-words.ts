import type { Operation } from '../../../src/model/operations.ts'
import type { GroupAccess, GroupLevel, ResourceSet, TokenScope } from '../api/types.ts'

/** What an operation acts on: the streams of basins, basins, access tokens, or the account. */
type Subject = 'streams' | 'basins' | 'tokens' | 'account'

/** An operation: its group, what it acts on, and what it does. */
interface OperationWords {
  readonly group: readonly [GroupLevel, GroupAccess]
  readonly subject: Subject
  readonly does: string
}

function words(level: GroupLevel, access: GroupAccess, subject: Subject, does: string): OperationWords {
  return { group: [level, access], subject, does }
}

/** Every operation (docs/protocol.md "Operations"). */
export const OPERATION_WORDS: Readonly<Record<Operation, OperationWords>> = {
  read: words('stream', 'read', 'streams', 'read records'),
  'check-tail': words('stream', 'read', 'streams', 'check the tail'),
  'stream-metrics': words('stream', 'read', 'streams', 'see usage'),
  append: words('stream', 'write', 'streams', 'append records'),
  trim: words('stream', 'write', 'streams', 'trim'),
  fence: words('stream', 'write', 'streams', 'fence'),
  'list-streams': words('basin', 'read', 'streams', 'list them'),
  'get-stream-config': words('basin', 'read', 'streams', 'read the configuration'),
  'create-stream': words('basin', 'write', 'streams', 'create'),
  'delete-stream': words('basin', 'write', 'streams', 'delete'),
  'reconfigure-stream': words('basin', 'write', 'streams', 'change the configuration'),
  'basin-metrics': words('basin', 'read', 'basins', 'see usage'),
  'list-basins': words('account', 'read', 'basins', 'list them'),
  'get-basin-config': words('account', 'read', 'basins', 'read the configuration'),
  'create-basin': words('account', 'write', 'basins', 'create'),
  'delete-basin': words('account', 'write', 'basins', 'delete'),
  'reconfigure-basin': words('account', 'write', 'basins', 'change the configuration'),
  'list-access-tokens': words('account', 'read', 'tokens', 'list them'),
  'issue-access-token': words('account', 'write', 'tokens', 'issue'),
  'revoke-access-token': words('account', 'write', 'tokens', 'revoke'),
  'account-metrics': words('account', 'read', 'account', 'see usage'),
  'list-locations': words('account', 'read', 'account', 'list locations'),
  'get-default-location': words('account', 'read', 'account', 'see the default location'),
  'set-default-location': words('account', 'write', 'account', 'set the default location'),
}

/** The names of all operations, by the kind of resource that they act on. */
export const OPERATION_NAMES = Object.keys(OPERATION_WORDS) as Operation[]

/** What a scope permits on one kind of resource. */
export interface ScopeSentence {
  /** `On every stream that begins with “tenant-7/” in the basin “shop”`. */
  readonly where: string
  /** `read records`, `append records`; empty if no resource is in the scope. */
  readonly verbs: readonly string[]
}

/** Whether a scope permits an operation, on resources that it covers. */
function permitsOperation(scope: TokenScope, operation: Operation): boolean {
  const [level, access] = OPERATION_WORDS[operation].group
  return scope.ops?.includes(operation) === true || scope.op_groups?.[level]?.[access] === true
}

/** What a scope permits, in sentences; empty if it permits nothing. */
export function scopeSentences(scope: TokenScope): ScopeSentence[] {
  return (['streams', 'basins', 'tokens', 'account'] as const).flatMap((subject) => {
    const operations = OPERATION_NAMES.filter(
      (name) => OPERATION_WORDS[name].subject === subject && permitsOperation(scope, name),
    )
    if (operations.length === 0) return []
    const where = whereOf(subject, scope)
    if (where === undefined) return []
    return [{ where, verbs: operations.map((name) => OPERATION_WORDS[name].does) }]
  })
}

/** Why permitted operations have no effect: no resource is in the scope. */
export function scopeWarnings(scope: TokenScope): string[] {
  const subjects = new Set(
    OPERATION_NAMES.filter((name) => permitsOperation(scope, name)).map(
      (name) => OPERATION_WORDS[name].subject,
    ),
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
export function scopeSummary(scope: TokenScope): string {
  const sentences = scopeSentences(scope)
  if (sentences.length === 0) return 'nothing'
  return sentences.map(({ where, verbs }) => `${where}: ${verbs.join(', ')}`).join('. ')
}

function whereOf(subject: Subject, { basins, streams, access_tokens }: TokenScope): string | undefined {
  if (subject === 'account') return 'On the account'
  if (subject === 'tokens') return phrase(access_tokens, 'access token', 'On')
  if (subject === 'basins') return phrase(basins, 'basin', 'On')
  const ofStreams = phrase(streams, 'stream', 'On')
  const ofBasins = phrase(basins, 'basin', 'in')
  return ofStreams === undefined || ofBasins === undefined ? undefined : `${ofStreams} ${ofBasins}`
}

function phrase(set: ResourceSet | null | undefined, noun: string, preposition: string): string | undefined {
  if (set == null) return undefined
  if ('exact' in set) return set.exact === '' ? undefined : `${preposition} the ${noun} “${set.exact}”`
  if (set.prefix === '') return `${preposition} every ${noun}`
  return `${preposition} every ${noun} that begins with “${set.prefix}”`
}
