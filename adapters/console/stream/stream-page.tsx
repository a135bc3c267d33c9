import { useState } from 'preact/hooks'
import { ConfigForm, Deletion, StreamConfigFields, streamConfigOf } from '../config.tsx'
import { useConsole } from '../context.ts'
import { Facts, STREAM_NUMBERS, streamNumbers } from '../numbers.tsx'
import type { ConsoleRoute } from '../route.ts'
import { Link, Tabs } from '../ui/elements.tsx'
import { useLoad } from '../ui/load.ts'
import { Followers } from '../usage/followers.tsx'
import { Usage } from '../usage/usage.tsx'
import { Append } from './append.tsx'
import { FenceAndTrim } from './fence-and-trim.tsx'
import { Records } from './records.tsx'

/** One stream: its records, appends, commands, configuration and usage. */
export function StreamPage(props: {
  readonly route: ConsoleRoute & { readonly view: 'stream' }
  /** Changes with each navigation. */
  readonly visit: number
}) {
  const { route, visit } = props
  const { basin, stream, tab, place } = route
  const { connection, navigate, announce, encryptionKeys } = useConsole()
  const keyName = JSON.stringify([basin, stream])
  const [encryptionKey, setEncryptionKey] = useState(encryptionKeys.get(keyName) ?? '')
  const target = { basin, stream, encryptionKey }
  const handle = connection.hw.basin(basin).stream(stream)
  // Only lists tell whether a stream is encrypted.
  const info = useLoad(async (signal) => {
    const { items } = await connection.hw.basin(basin).listStreams({ prefix: stream, limit: 1 }, { signal })
    return items.find(({ name }) => name === stream)
  }, [])
  // The key is asked for unless the stream is known to need none. A stream that does not exist needs none.
  const cipher = info.isLoading ? null : info.error === undefined ? (info.data?.cipher ?? null) : undefined
  return (
    <>
      <nav class="path" aria-label="Path">
        <Link to={{ view: 'basins' }}>Basins</Link> /{' '}
        <Link to={{ view: 'basin', basin, tab: 'streams' }}>{basin}</Link>
      </nav>
      <div class="title">
        <h1 tabIndex={-1} title={stream}>
          {stream}
        </h1>
        {cipher != null && <span class="tag">{cipher}</span>}
        <Facts
          titles={STREAM_NUMBERS}
          load={(signal, before) => streamNumbers(connection, { basin, stream }, before, signal)}
        />
        {cipher !== null && (
          <EncryptionKeyField
            initial={encryptionKey}
            onChange={(key) => {
              encryptionKeys.set(keyName, key)
              setEncryptionKey(key)
            }}
          />
        )}
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
          ['followers', 'Followers'],
          ['usage', 'Usage'],
        ]}
      />
      {tab === 'records' && <Records key={visit} target={target} cipher={cipher} initial={place} />}
      {tab === 'append' && <Append target={target} />}
      {tab === 'fence-and-trim' && <FenceAndTrim target={target} />}
      {tab === 'configuration' && (
        <>
          <ConfigForm
            load={(signal) => handle.config({ signal })}
            save={(values) => handle.reconfigure(streamConfigOf(values))}
          >
            {(config) => (
              <StreamConfigFields
                config={config}
                inherited="Basin default"
                retentionHint="A longer time also keeps the records that are stored. A shorter one applies to later records."
              />
            )}
          </ConfigForm>
          <Deletion
            noun="stream"
            name={stream}
            contents="all of its records"
            onDelete={async () => {
              await handle.delete()
              announce(`Deleted ${stream}`)
              navigate({ view: 'basin', basin, tab: 'streams' })
            }}
          />
        </>
      )}
      {tab === 'followers' && <Followers of={{ basin, stream }} />}
      {tab === 'usage' && <Usage of={{ basin, stream }} />}
    </>
  )
}

/** A field for the encryption key of a stream, which is kept in memory only. */
function EncryptionKeyField(props: { readonly initial: string; readonly onChange: (key: string) => void }) {
  return (
    <label class="inline">
      Encryption key
      <input
        type="password"
        autocomplete="off"
        placeholder="32 bytes in base64"
        pattern="\s*[A-Za-z0-9+\/]{43}=\s*"
        defaultValue={props.initial}
        onChange={(event) => props.onChange(event.currentTarget.value.trim())}
      />
      <span class="problem">A key is 32 bytes in base64: 44 characters</span>
    </label>
  )
}
