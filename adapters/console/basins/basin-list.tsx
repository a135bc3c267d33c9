import { useState } from 'preact/hooks'
import type { BasinInfo } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { GettingStarted } from '../start/getting-started.tsx'
import { Link } from '../ui/link.tsx'
import { NameList } from '../ui/list.tsx'
import { CreateBasin } from './create-basin.tsx'

/** The basins of the server. */
export function BasinList() {
  const { client, navigate, announce } = useConsole()
  const [isCreating, setCreating] = useState(false)
  const open = (basin: string) => navigate({ view: 'basin', basin, tab: 'streams' })
  return (
    <>
      <h1>Basins</h1>
      <NameList<BasinInfo>
        noun="basin"
        version={0}
        load={async (query, signal) => {
          const call = { method: 'GET', path: ['basins'], query } as const
          const page = await client.json<{ basins: BasinInfo[]; has_more: boolean }>(call, signal)
          return { items: page.basins, hasMore: page.has_more }
        }}
        nameOf={({ name }) => name}
        onOpen={open}
        columns={[
          {
            title: 'Name',
            cell: ({ name }) => <Link to={{ view: 'basin', basin: name, tab: 'streams' }}>{name}</Link>,
          },
          {
            title: 'State',
            cell: ({ state, deleted_at }) => (deleted_at == null ? (state ?? 'active') : 'deleting'),
          },
          { title: 'Location', isSecondary: true, cell: ({ location }) => location ?? '–' },
          { title: 'Created', isSecondary: true, cell: ({ created_at }) => formatDate(created_at) },
        ]}
        empty={<GettingStarted onCreate={() => setCreating(true)} />}
        actions={
          <button type="button" class="primary" aria-keyshortcuts="c" onClick={() => setCreating(true)}>
            Create basin
          </button>
        }
      />
      {isCreating && (
        <CreateBasin
          onClose={() => setCreating(false)}
          onCreated={(basin) => {
            announce(`Created ${basin}`)
            open(basin)
          }}
        />
      )}
    </>
  )
}
