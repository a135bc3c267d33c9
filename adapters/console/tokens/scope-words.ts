import type { Operation } from '../../../src/model/operations.ts'
import type { ResourceSet, TokenScope } from '../api/types.ts'
import { OPERATION_NAMES, OPERATION_WORDS, type Subject } from './operations.ts'

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
