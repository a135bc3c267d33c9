import { useState } from 'preact/hooks'
import type { StreamInfo } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { formatDate } from '../format.ts'
import { Link } from '../ui/link.tsx'
import { NameList } from '../ui/list.tsx'
import { CreateStream } from './create-stream.tsx'

/** The streams of a basin. */
export function StreamList({ basin }: { readonly basin: string }) {
  const { client, navigate, announce } = useConsole()
  const [isCreating, setCreating] = useState(false)
  const open = (stream: string) => navigate({ view: 'stream', basin, stream, tab: 'records' })
  return (
    <>
      <NameList<StreamInfo>
        noun="stream"
        version={0}
        load={async (query, signal) => {
          const call = { method: 'GET', path: ['streams'], basin, query } as const
          const page = await client.json<{ streams: StreamInfo[]; has_more: boolean }>(call, signal)
          return { items: page.streams, hasMore: page.has_more }
        }}
        nameOf={({ name }) => name}
        onOpen={open}
        columns={[
          {
            title: 'Name',
            cell: ({ name }) => (
              <Link to={{ view: 'stream', basin, stream: name, tab: 'records' }}>{name}</Link>
            ),
          },
          { title: 'Encryption', isSecondary: true, cell: ({ cipher }) => cipher ?? '–' },
          {
            title: 'Created',
            isSecondary: true,
            cell: ({ created_at, deleted_at }) => (deleted_at == null ? formatDate(created_at) : 'deleting'),
          },
        ]}
        empty={
          <p class="empty">
            This basin has no streams. Create one here, or append to one: a basin can create streams on first
            use.
          </p>
        }
        actions={
          <button type="button" class="primary" aria-keyshortcuts="c" onClick={() => setCreating(true)}>
            Create stream
          </button>
        }
      />
      {isCreating && (
        <CreateStream
          basin={basin}
          onClose={() => setCreating(false)}
          onCreated={(stream) => {
            announce(`Created ${stream}`)
            open(stream)
          }}
        />
      )}
    </>
  )
}
