import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { useLoad, useSubmit } from '../ui/async.ts'
import { Confirm } from '../ui/dialog.tsx'
import { Loading, Problem } from '../ui/notice.tsx'

/** A form for a configuration that exists. */
export function ConfigForm<Fields>(props: {
  readonly load: (signal: AbortSignal) => Promise<Fields>
  /** Resolves to what the server now has. */
  readonly save: (fields: Fields) => Promise<Fields>
  readonly children: (fields: Fields, onChange: (fields: Fields) => void) => ComponentChildren
}) {
  const { load, save, children } = props
  const { announce } = useConsole()
  const loaded = useLoad(load, [])
  const [saved, setSaved] = useState<Fields>()
  const [edited, setEdited] = useState<Fields>()
  const current = saved ?? loaded.data
  const fields = edited ?? current
  const isChanged = JSON.stringify(fields) !== JSON.stringify(current)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    if (fields === undefined) return
    setSaved(await save(fields))
    setEdited(undefined)
    announce('Saved')
  })
  if (fields === undefined) return loaded.isLoading ? <Loading /> : <Problem error={loaded.error} />
  return (
    <form class="panel" onSubmit={onSubmit}>
      {children(fields, setEdited)}
      <Problem error={error} />
      <footer>
        <button type="submit" class="primary" disabled={isBusy || !isChanged}>
          Save
        </button>
        {isChanged && (
          <button type="button" disabled={isBusy} onClick={() => setEdited(undefined)}>
            Discard changes
          </button>
        )}
      </footer>
    </form>
  )
}

/** The end of a configuration: a button that deletes the resource after confirmation. */
export function Deletion(props: {
  readonly noun: string
  readonly name: string
  readonly contents: string
  /** Whether the name must be typed. */
  readonly mustType?: boolean | undefined
  readonly onDelete: () => Promise<void>
}) {
  const { noun, name, contents, mustType = false, onDelete } = props
  const [isConfirming, setConfirming] = useState(false)
  return (
    <section class="panel deletion">
      <h2>Delete this {noun}</h2>
      <p>Deletes it with {contents}. This cannot be undone.</p>
      <button type="button" class="danger" onClick={() => setConfirming(true)}>
        Delete {noun}
      </button>
      {isConfirming && (
        <Confirm
          title={`Delete ${noun}`}
          action={`Delete ${noun}`}
          name={mustType ? name : undefined}
          onClose={() => setConfirming(false)}
          onConfirm={onDelete}
        >
          <p>
            Deletes <strong>{name}</strong> with {contents}. This cannot be undone.
          </p>
        </Confirm>
      )}
    </section>
  )
}
