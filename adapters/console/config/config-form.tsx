import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { Problem } from '../ui/notice.tsx'
import { useLoad } from '../ui/use-load.ts'
import { useSubmit } from '../ui/use-submit.ts'

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
  const [edited, setEdited] = useState<Fields>()
  const fields = edited ?? loaded.data
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    if (fields === undefined) return
    setEdited(await save(fields))
    announce('Saved')
  })
  if (fields === undefined) return <Problem error={loaded.error} />
  return (
    <form class="panel" onSubmit={onSubmit}>
      {children(fields, setEdited)}
      <Problem error={error} />
      <footer>
        <button type="submit" class="primary" disabled={isBusy}>
          Save
        </button>
      </footer>
    </form>
  )
}
