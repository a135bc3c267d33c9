import { Checkbox, Field, Select } from '../ui/field.tsx'
import { OPERATION_NAMES, OPERATION_WORDS } from './operations.ts'
import { EMPTY_SCOPE, PRESETS, type ScopeFields, type SetFields, scopeOf } from './scope-model.ts'
import { scopeSentences, scopeWarnings } from './scope-words.ts'

const LEVELS = ['account', 'basin', 'stream'] as const
const ACCESSES = ['read', 'write'] as const

/** Builds the scope of a token, and states in words what it permits. */
export function ScopeBuilder(props: {
  readonly scope: ScopeFields
  readonly onChange: (scope: ScopeFields) => void
}) {
  const { scope, onChange } = props
  return (
    <>
      <Field label="Start from">
        {(id) => (
          <Select
            id={id}
            value=""
            options={[['', 'Choose …'], ...PRESETS.map(([title]) => [title, title] as const)]}
            onChange={(title) => onChange(PRESETS.find(([one]) => one === title)?.[1] ?? EMPTY_SCOPE)}
          />
        )}
      </Field>
      <fieldset>
        <legend>Resources</legend>
        <ResourceFields
          label="Basins"
          set={scope.basins}
          onChange={(basins) => onChange({ ...scope, basins })}
        />
        <ResourceFields
          label="Streams"
          set={scope.streams}
          onChange={(streams) => onChange({ ...scope, streams })}
        />
        <ResourceFields
          label="Access tokens"
          set={scope.tokens}
          onChange={(tokens) => onChange({ ...scope, tokens })}
        />
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
    <Field label={label}>
      {(id) => (
        <span class="duration">
          <Select
            id={id}
            value={set.kind}
            options={[
              ['none', 'None'],
              ['all', 'All'],
              ['prefix', 'With the prefix'],
              ['exact', 'With the name'],
            ]}
            onChange={(kind) => onChange({ ...set, kind })}
          />
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
        </span>
      )}
    </Field>
  )
}

function Operations(props: { readonly scope: ScopeFields; readonly onChange: (scope: ScopeFields) => void }) {
  const { scope, onChange } = props
  const toggle = <Value,>(values: readonly Value[], value: Value, on: boolean) =>
    on ? [...values, value] : values.filter((one) => one !== value)
  return (
    <fieldset>
      <legend>Operations</legend>
      <table class="groups" aria-label="Groups of operations">
        <thead>
          <tr>
            <th scope="col">Group</th>
            {ACCESSES.map((access) => (
              <th key={access} scope="col">
                {access}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {LEVELS.map((level) => (
            <tr key={level}>
              <th scope="row">{level}</th>
              {ACCESSES.map((access) => (
                <td key={access}>
                  <input
                    type="checkbox"
                    aria-label={`${level} ${access}`}
                    checked={scope.groups.includes(`${level}:${access}`)}
                    onChange={(event) => {
                      const groups = toggle(
                        scope.groups,
                        `${level}:${access}` as const,
                        event.currentTarget.checked,
                      )
                      onChange({ ...scope, groups })
                    }}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      <details>
        <summary>Single operations ({scope.ops.length})</summary>
        <div class="checks">
          {OPERATION_NAMES.map((name) => {
            const isInGroup = scope.groups.includes(
              OPERATION_WORDS[name].group.join(':') as `${'stream'}:read`,
            )
            return (
              <Checkbox
                key={name}
                label={name}
                checked={isInGroup || scope.ops.includes(name)}
                disabled={isInGroup}
                onChange={(on) => onChange({ ...scope, ops: toggle(scope.ops, name, on) })}
              />
            )
          })}
        </div>
      </details>
    </fieldset>
  )
}

function Words({ scope }: { readonly scope: ScopeFields }) {
  const wire = scopeOf(scope)
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
      {hasGroup && <p class="hint">Groups include operations that later versions add to them.</p>}
    </section>
  )
}
