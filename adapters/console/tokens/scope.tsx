import { useState } from 'preact/hooks'
import { permitsOperation } from '../../../src/core/permission.ts'
import {
  type AccessScope,
  accessScope,
  GROUP_OF,
  OPERATION_LEVELS,
  type Operation,
  type OperationLevel,
  type ResourceSet,
} from '../../../src/model/access.ts'
import { Choice, SelectField } from '../ui/fields.tsx'

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

const OPERATION_NAMES = Object.keys(OPERATION_WORDS) as Operation[]

/** The permissions of a scope in words. */
interface ScopeWords {
  /** The permissions on one kind of resource: `On every stream in the basin “shop”: read records`. */
  readonly sentences: readonly string[]
  /** Why permitted operations have no effect: no resource is in the scope. */
  readonly warnings: readonly string[]
}

/** Returns the permissions of a scope in words. */
export function scopeWords(scope: AccessScope): ScopeWords {
  const sentences: string[] = []
  const warnings: string[] = []
  for (const subject of ['streams', 'basins', 'tokens', 'account'] as const) {
    const operations = OPERATION_NAMES.filter(
      (name) => OPERATION_WORDS[name][0] === subject && permitsOperation(scope, name),
    )
    if (operations.length === 0) continue
    const where = whereOf(subject, scope)
    if (where === undefined) warnings.push(MISSING[subject])
    else sentences.push(`${where}: ${operations.map((name) => OPERATION_WORDS[name][1]).join(', ')}`)
  }
  if (sentences.length + warnings.length === 0) {
    warnings.push('No operation is selected: the token would permit nothing.')
  }
  return { sentences, warnings }
}

const MISSING: Readonly<Record<Subject, string>> = {
  streams: 'Operations on streams are selected, but no stream or no basin is.',
  basins: 'Operations on basins are selected, but no basin is.',
  tokens: 'Operations on access tokens are selected, but no access token is.',
  account: '',
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

const ALL = { prefix: '' }
const BOTH = { read: true, write: true }
const EVERY_STREAM = { basins: ALL, streams: ALL }
const LISTS = ['list-basins', 'list-streams'] as const

/** Scopes to start from. */
export const PRESETS: readonly (readonly [title: string, scope: AccessScope])[] = [
  ['Read streams', accessScope({ ...EVERY_STREAM, opGroups: { stream: { read: true } }, ops: LISTS })],
  ['Append only', accessScope({ ...EVERY_STREAM, ops: ['append'] })],
  ['Read and append', accessScope({ ...EVERY_STREAM, opGroups: { stream: BOTH }, ops: LISTS })],
  [
    'Everything',
    accessScope({
      ...EVERY_STREAM,
      accessTokens: ALL,
      opGroups: { account: BOTH, basin: BOTH, stream: BOTH },
    }),
  ],
]

const RESOURCES = [
  ['basins', 'Basins'],
  ['streams', 'Streams'],
  ['accessTokens', 'Access tokens'],
] as const

interface ScopeProps {
  readonly scope: AccessScope
  readonly onChange: (scope: AccessScope) => void
}

/** Builds the scope of a token, and states in words what it permits. */
export function ScopeBuilder({ scope, onChange }: ScopeProps) {
  const [preset, setPreset] = useState(scope)
  return (
    <>
      <SelectField
        label="Permissions"
        value={PRESETS.find(([, one]) => one === scope)?.[0] ?? ''}
        options={[...PRESETS.map(([title]) => [title, title] as const), ['', 'As chosen below']]}
        onChange={(title) => {
          const [, chosen] = PRESETS.find(([one]) => one === title) ?? ['', { ...scope }]
          if (title !== '') setPreset(chosen)
          onChange(chosen)
        }}
      />
      <fieldset>
        <legend>Resources</legend>
        <div class="fields">
          {RESOURCES.map(([kind, label]) => (
            <ResourceFields
              key={`${kind} ${PRESETS.findIndex(([, one]) => one === preset)}`}
              label={label}
              initial={preset[kind] === null ? 'none' : 'all'}
              onChange={(set) => onChange({ ...scope, [kind]: set })}
            />
          ))}
        </div>
      </fieldset>
      <Operations scope={scope} onChange={onChange} />
      <Words scope={scope} />
    </>
  )
}

/** The set of resources of each choice and the text that belongs to it. */
const SETS = {
  none: () => null,
  all: () => ALL,
  prefix: (prefix: string) => ({ prefix }),
  exact: (exact: string) => ({ exact }),
}

function ResourceFields(props: {
  readonly label: string
  readonly initial: keyof typeof SETS
  readonly onChange: (set: ResourceSet | null) => void
}) {
  const { label, initial, onChange } = props
  const [kind, setKind] = useState(initial)
  const [text, setText] = useState('')
  return (
    <SelectField
      label={label}
      value={kind}
      options={[
        ['none', 'None'],
        ['all', 'All'],
        ['prefix', 'With the prefix'],
        ['exact', 'With the name'],
      ]}
      onChange={(next) => {
        setKind(next)
        onChange(SETS[next](text))
      }}
    >
      {(kind === 'prefix' || kind === 'exact') && (
        <input
          aria-label={`${kind === 'prefix' ? 'Prefix' : 'Name'} of ${label.toLowerCase()}`}
          required
          autocomplete="off"
          spellcheck={false}
          value={text}
          onInput={({ currentTarget: { value } }) => {
            setText(value)
            onChange(SETS[kind](value))
          }}
        />
      )}
    </SelectField>
  )
}

function Operations({ scope, onChange }: ScopeProps) {
  const { opGroups, ops } = scope
  const changeGroup = (level: OperationLevel, access: 'read' | 'write', on: boolean) =>
    onChange({ ...scope, opGroups: { ...opGroups, [level]: { ...opGroups[level], [access]: on } } })
  const changeOperation = (name: Operation, on: boolean) =>
    onChange({ ...scope, ops: on ? [...ops, name] : ops.filter((one) => one !== name) })
  return (
    <fieldset>
      <legend>Operations</legend>
      <div class="checks">
        {OPERATION_LEVELS.flatMap((level) =>
          (['read', 'write'] as const).map((access) => (
            <Choice
              key={`${level}: ${access}`}
              label={`${level}: ${access}`}
              checked={opGroups[level][access]}
              onChange={(event) => changeGroup(level, access, event.currentTarget.checked)}
            />
          )),
        )}
      </div>
      <details>
        <summary>Single operations ({ops.length})</summary>
        <div class="checks">
          {OPERATION_NAMES.map((name) => {
            const [level, access] = GROUP_OF[name]
            return (
              <Choice
                key={name}
                label={name}
                checked={permitsOperation(scope, name)}
                disabled={opGroups[level][access]}
                onChange={(event) => changeOperation(name, event.currentTarget.checked)}
              />
            )
          })}
        </div>
      </details>
    </fieldset>
  )
}

function Words({ scope }: { readonly scope: AccessScope }) {
  const { sentences, warnings } = scopeWords(scope)
  const hasGroup = OPERATION_LEVELS.some((level) => scope.opGroups[level].read || scope.opGroups[level].write)
  return (
    <section class="words" role="status" aria-label="What the token permits">
      <h3>The token permits</h3>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}.</li>
        ))}
      </ul>
      {warnings.map((warning) => (
        <p key={warning} class="problem">
          {warning}
        </p>
      ))}
      {hasGroup && <p class="hint">Groups include operations that later versions add.</p>}
    </section>
  )
}
