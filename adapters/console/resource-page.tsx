import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useConsole, useLoad } from './context.ts'
import { Facts } from './numbers.tsx'
import type { ConsoleRoute } from './route.ts'
import { ConfirmButton } from './ui/dialog.tsx'
import { Button, Link, LoadStatus, Problem } from './ui/elements.tsx'
import { type FormValues, useSubmit } from './ui/fields.tsx'
import { Followers } from './usage/followers.tsx'
import type { ResourceName } from './usage/metrics.ts'
import { Usage } from './usage/usage.tsx'

/** A basin or a stream: its path, its name with its numbers, and its parts, one of which is open. */
export function ResourcePage(props: {
  readonly route: Extract<ConsoleRoute, { readonly basin: string }>
  /** The parts by the names of their tabs, before those that every resource has. */
  readonly parts: Readonly<Record<string, ComponentChildren>>
  /** Shown before the numbers. */
  readonly tag?: string | null | undefined
  /** Shown after the numbers. */
  readonly children?: ComponentChildren
}) {
  const { route, tag, children } = props
  const { basin, tab } = route
  const isStream = route.view === 'stream'
  const of = isStream ? { basin, stream: route.stream } : { basin }
  const name = isStream ? route.stream : basin
  const parts: typeof props.parts = {
    ...props.parts,
    followers: <Followers of={of} />,
    usage: <Usage of={of} />,
  }
  return (
    <>
      <nav class="path" aria-label="Path">
        <Link to={{ view: 'basins' }}>Basins</Link>
        {isStream && (
          <>
            {' / '}
            <Link to={{ view: 'basin', basin, tab: 'streams' }}>{basin}</Link>
          </>
        )}
      </nav>
      <div class="title">
        <h1 tabIndex={-1} title={name}>
          {name}
        </h1>
        {tag && <span class="tag">{tag}</span>}
        <Facts of={of} />
        {children}
      </div>
      <nav class="tabs" aria-label={isStream ? 'Stream' : 'Basin'}>
        {Object.keys(parts).map((part) => (
          <Link key={part} to={{ ...route, tab: part, place: '' } as typeof route} current={part === tab}>
            {`${part[0]!.toUpperCase()}${part.slice(1).replaceAll('-', ' ')}`}
          </Link>
        ))}
      </nav>
      {parts[tab]}
    </>
  )
}

/** A form for the configuration of a basin or a stream, and a button that deletes it after confirmation. */
export function Configuration<Config, Change>(props: {
  readonly of: ResourceName
  readonly handle: {
    config(options: { readonly signal: AbortSignal }): Promise<Config>
    reconfigure(change: Change): Promise<Config>
    delete(): Promise<void>
  }
  readonly changeOf: (values: FormValues) => Change
  readonly children: (config: Config) => ComponentChildren
}) {
  const { of, handle, changeOf, children } = props
  const { announce, navigate } = useConsole()
  const loaded = useLoad((signal) => handle.config({ signal }), [])
  const { data, reload } = loaded
  const [discarded, setDiscarded] = useState(0)
  const { isBusy, error, onSubmit } = useSubmit(async (values) => {
    await handle.reconfigure(changeOf(values))
    reload()
    announce('Saved')
  })
  const { basin, stream } = of
  const isStream = stream !== undefined
  const noun = isStream ? 'stream' : 'basin'
  const name = stream ?? basin
  const effect = `with all of its ${isStream ? '' : 'streams and '}records. This cannot be undone.`
  const remove = async () => {
    await handle.delete()
    announce(`Deleting ${name}`)
    navigate(isStream ? { view: 'basin', basin, tab: 'streams' } : { view: 'basins' })
  }
  return (
    <>
      {data === undefined ? (
        <LoadStatus of={loaded} />
      ) : (
        // Another key shows what the server has.
        <form key={JSON.stringify([data, discarded])} class="panel" onSubmit={onSubmit}>
          {children(data)}
          <Problem error={error ?? loaded.error} />
          <footer>
            <button type="submit" class="primary" disabled={isBusy}>
              Save
            </button>
            <Button class="quiet" onClick={() => setDiscarded(discarded + 1)}>
              Discard changes
            </Button>
          </footer>
        </form>
      )}
      <section class="panel deletion">
        <h2>Delete this {noun}</h2>
        <p>Deletes it {effect}</p>
        <ConfirmButton
          class="danger"
          action={`Delete ${noun}`}
          name={isStream ? undefined : name}
          onConfirm={remove}
        >
          <p>
            Deletes <strong>{name}</strong> {effect}
          </p>
        </ConfirmButton>
      </section>
    </>
  )
}
