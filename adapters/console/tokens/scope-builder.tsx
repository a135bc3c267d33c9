import { type AccessScope, GROUP_OF, type Operation, type ResourceSet } from '../../../src/model/access.ts'
import { Checkbox, SelectField } from '../ui/fields.tsx'
import { OPERATION_NAMES, scopeSentences, scopeWarnings } from './scope-words.ts'

/** The resources of one kind, as the form has them. */
interface SetFields {
  readonly kind: 'none' | 'all' | 'prefix' | 'exact'
  readonly text: string
}

/** The groups of operations: those on resources of a level that read, or that write. */
const GROUPS = [
  ...(['account:read', 'account:write', 'basin:read', 'basin:write', 'stream:read', 'stream:write'] as const),
]
type Group = (typeof GROUPS)[number]

/** The scope of a token, as the form has it. */
export interface ScopeFields {
  readonly basins: SetFields
  readonly streams: SetFields
  readonly tokens: SetFields
  readonly groups: readonly Group[]
  readonly ops: readonly Operation[]
}

const NONE: SetFields = { kind: 'none', text: '' }
const ALL: SetFields = { kind: 'all', text: '' }

const EMPTY_SCOPE: ScopeFields = { basins: ALL, streams: ALL, tokens: NONE, groups: [], ops: [] }

/** Scopes to start from. */
export const PRESETS: readonly (readonly [title: string, scope: ScopeFields])[] = [
  ['Read streams', { ...EMPTY_SCOPE, groups: ['stream:read'], ops: ['list-basins', 'list-streams'] }],
  ['Append only', { ...EMPTY_SCOPE, ops: ['append'] }],
  [
    'Read and append',
    { ...EMPTY_SCOPE, groups: ['stream:read', 'stream:write'], ops: ['list-basins', 'list-streams'] },
  ],
  ['Everything', { ...EMPTY_SCOPE, tokens: ALL, groups: GROUPS }],
]

/** The scope of fields. */
export function tokenScopeOf({ basins, streams, tokens, groups, ops }: ScopeFields): AccessScope {
  const level = (name: 'account' | 'basin' | 'stream') => ({
    read: groups.includes(`${name}:read`),
    write: groups.includes(`${name}:write`),
  })
  return {
    basins: setOf(basins),
    streams: setOf(streams),
    accessTokens: setOf(tokens),
    opGroups: { account: level('account'), basin: level('basin'), stream: level('stream') },
    ops,
  }
}

function setOf({ kind, text }: SetFields): ResourceSet | null {
  if (kind === 'none') return null
  if (kind === 'all') return { prefix: '' }
  return kind === 'prefix' ? { prefix: text } : { exact: text }
}

const RESOURCES = [
  ['basins', 'Basins'],
  ['streams', 'Streams'],
  ['tokens', 'Access tokens'],
] as const

/** Builds the scope of a token, and states in words what it permits. */
export function ScopeBuilder(props: {
  readonly scope: ScopeFields
  readonly onChange: (scope: ScopeFields) => void
}) {
  const { scope, onChange } = props
  return (
    <>
      <SelectField
        label="Permissions"
        value={PRESETS.find(([, preset]) => preset === scope)?.[0] ?? ''}
        options={[...PRESETS.map(([title]) => [title, title] as const), ['', 'As chosen below']]}
        onChange={(title) => onChange(PRESETS.find(([one]) => one === title)?.[1] ?? { ...scope })}
      />
      <fieldset>
        <legend>Resources</legend>
        <div class="fields">
          {RESOURCES.map(([kind, label]) => (
            <ResourceFields
              key={kind}
              label={label}
              set={scope[kind]}
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

function ResourceFields(props: {
  readonly label: string
  readonly set: SetFields
  readonly onChange: (set: SetFields) => void
}) {
  const { label, set, onChange } = props
  const hasText = set.kind === 'prefix' || set.kind === 'exact'
  return (
    <SelectField
      label={label}
      value={set.kind}
      options={[
        ['none', 'None'],
        ['all', 'All'],
        ['prefix', 'With the prefix'],
        ['exact', 'With the name'],
      ]}
      onChange={(kind) => onChange({ ...set, kind })}
    >
      {hasText && (
        <input
          aria-label={`${set.kind === 'prefix' ? 'Prefix' : 'Name'} of ${label.toLowerCase()}`}
          required
          autocomplete="off"
          spellcheck={false}
          value={set.text}
          onInput={(event) => onChange({ ...set, text: event.currentTarget.value })}
        />
      )}
    </SelectField>
  )
}

function Operations(props: { readonly scope: ScopeFields; readonly onChange: (scope: ScopeFields) => void }) {
  const { scope, onChange } = props
  const { groups, ops } = scope
  const toggle = <Value,>(values: readonly Value[], value: Value, on: boolean) =>
    on ? [...values, value] : values.filter((one) => one !== value)
  return (
    <fieldset>
      <legend>Operations</legend>
      <div class="checks">
        {GROUPS.map((group) => (
          <Checkbox
            key={group}
            label={group.replace(':', ': ')}
            checked={groups.includes(group)}
            onChange={(on) => onChange({ ...scope, groups: toggle(groups, group, on) })}
          />
        ))}
      </div>
      <details>
        <summary>Single operations ({ops.length})</summary>
        <div class="checks">
          {OPERATION_NAMES.map((name) => {
            const isInGroup = groups.some((group) => group === GROUP_OF[name].join(':'))
            return (
              <Checkbox
                key={name}
                label={name}
                checked={isInGroup || ops.includes(name)}
                disabled={isInGroup}
                onChange={(on) => onChange({ ...scope, ops: toggle(ops, name, on) })}
              />
            )
          })}
        </div>
      </details>
    </fieldset>
  )
}

function Words({ scope }: { readonly scope: ScopeFields }) {
  const wire = tokenScopeOf(scope)
  const hasGroup = scope.groups.length > 0
  return (
    <section class="words" role="status" aria-label="What the token permits">
      <h3>The token permits</h3>
      <ul>
        {scopeSentences(wire).map(({ where, verbs }) => (
          <li key={where}>
            {where}: {verbs.join(', ')}.
          </li>
        ))}
      </ul>
      {scopeWarnings(wire).map((warning) => (
        <p key={warning} class="problem">
          {warning}
        </p>
      ))}
      {hasGroup && <p class="hint">Groups include operations that later versions add.</p>}
    </section>
  )
}
