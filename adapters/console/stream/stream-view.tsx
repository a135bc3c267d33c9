import { useState } from 'preact/hooks'
import type { StreamConfig, StreamInfo } from '../api/types.ts'
import { ConfigForm } from '../config/config-form.tsx'
import { streamConfigOf, streamFields } from '../config/model.ts'
import { StreamConfigFields } from '../config/stream-fields.tsx'
import { useConsole } from '../context.ts'
import type { StreamTab } from '../route.ts'
import { Confirm } from '../ui/confirm.tsx'
import { Link, Tabs } from '../ui/link.tsx'
import { useLoad } from '../ui/use-load.ts'
import { StorageSize } from '../usage/storage-size.tsx'
import { Usage } from '../usage/usage.tsx'
import { Append } from './append.tsx'
import { FenceAndTrim } from './fence-and-trim.tsx'
import { Records } from './records.tsx'

/** One stream: its records, appends, commands, configuration and usage. */
export function StreamView(props: {
  readonly basin: string
  readonly stream: string
  readonly tab: StreamTab
}) {
  const { basin, stream, tab } = props
  const { client, navigate, announce } = useConsole()
  const [isDeleting, setDeleting] = useState(false)
  const path = ['streams', stream]
  // Only lists tell whether a stream is encrypted.
  const info = useLoad(async (signal) => {
    const call = { method: 'GET', path: ['streams'], basin, query: { prefix: stream, limit: 1 } } as const
    const { streams } = await client.json<{ streams: StreamInfo[] }>(call, signal)
    return streams.find(({ name }) => name === stream)
  }, [])
  // The key is asked for unless the stream is known to need none.
  const cipher = info.isLoading ? null : info.data?.cipher
  return (
    <>
      <nav class="path" aria-label="Path">
        <Link to={{ view: 'basins' }}>Basins</Link> /{' '}
        <Link to={{ view: 'basin', basin, tab: 'streams' }}>{basin}</Link>
      </nav>
      <div class="title">
        <h1>{stream}</h1>
        {cipher != null && <span class="tag">{cipher}</span>}
        <StorageSize of={{ basin, stream }} />
        <span class="spacer" />
        <button type="button" class="quiet danger" onClick={() => setDeleting(true)}>
          Delete stream
        </button>
      </div>
      <Tabs
        label="Stream"
        current={tab}
        to={(to) => ({ view: 'stream', basin, stream, tab: to })}
        tabs={[
          ['records', 'Records'],
          ['append', 'Append'],
          ['fence-and-trim', 'Fence and trim'],
          ['configuration', 'Configuration'],
          ['usage', 'Usage'],
        ]}
      />
      {tab === 'records' && <Records basin={basin} stream={stream} cipher={cipher} />}
      {tab === 'append' && <Append basin={basin} stream={stream} cipher={cipher} />}
      {tab === 'fence-and-trim' && <FenceAndTrim basin={basin} stream={stream} cipher={cipher} />}
      {tab === 'configuration' && (
        <ConfigForm
          load={async (signal) =>
            streamFields(await client.json<StreamConfig>({ method: 'GET', path, basin }, signal))
          }
          save={async (fields) => {
            const body = streamConfigOf(fields)
            return streamFields(await client.json<StreamConfig>({ method: 'PATCH', path, basin, body }))
          }}
        >
          {(fields, onChange) => (
            <StreamConfigFields fields={fields} inherits="the basin" onChange={onChange} />
          )}
        </ConfigForm>
      )}
      {tab === 'usage' && <Usage of={{ basin, stream }} />}
      {isDeleting && (
        <Confirm
          title="Delete stream"
          action="Delete stream"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await client.json({ method: 'DELETE', path, basin })
            announce(`Deleted ${stream}`)
            navigate({ view: 'basin', basin, tab: 'streams' })
          }}
        >
          <p>
            Deletes <strong>{stream}</strong> with all of its records. This cannot be undone.
          </p>
        </Confirm>
      )}
    </>
  )
}
