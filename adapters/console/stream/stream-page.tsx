import { useMemo, useState } from 'preact/hooks'
import { StreamConfigFields, streamConfigOf } from '../config.tsx'
import { useConsole, useLoad } from '../context.ts'
import { Configuration, ResourcePage } from '../resource-page.tsx'
import type { ConsoleRoute } from '../route.ts'
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
  const { basin, stream } = route
  const { connection } = useConsole()
  const { encryptionKeys } = connection
  const keyName = JSON.stringify([basin, stream])
  const [encryptionKey, setEncryptionKey] = useState(encryptionKeys.get(keyName) ?? '')
  const target = useMemo(() => {
    const handle = connection.hw.basin(basin).stream(stream, { encryptionKey })
    return { basin, stream, encryptionKey, handle }
  }, [connection, basin, stream, encryptionKey])
  // Only lists tell whether a stream is encrypted.
  const info = useLoad(async (signal) => {
    const { items } = await connection.hw.basin(basin).listStreams({ prefix: stream, limit: 1 }, { signal })
    return items.find(({ name }) => name === stream)
  }, [])
  // The key is asked for unless the stream is known to need none. A stream that does not exist needs none.
  const cipher = info.isLoading ? null : info.error === undefined ? (info.data?.cipher ?? null) : undefined
  return (
    <ResourcePage
      route={route}
      tag={cipher}
      parts={{
        records: <Records key={visit} target={target} cipher={cipher} initial={route.place} />,
        append: <Append target={target} />,
        'fence-and-trim': <FenceAndTrim target={target} />,
        configuration: (
          <Configuration of={{ basin, stream }} handle={target.handle} changeOf={streamConfigOf}>
            {(config) => (
              <StreamConfigFields
                config={config}
                inherited="Basin default"
                retentionHint="A longer time also keeps the records that are stored. A shorter one applies to later records."
              />
            )}
          </Configuration>
        ),
      }}
    >
      {cipher !== null && (
        <label class="inline">
          Encryption key
          <input
            type="password"
            autocomplete="off"
            placeholder="32 bytes in base64"
            pattern="\s*[A-Za-z0-9+\/]{43}=\s*"
            defaultValue={encryptionKey}
            onChange={(event) => {
              const key = event.currentTarget.value.trim()
              encryptionKeys.set(keyName, key)
              setEncryptionKey(key)
            }}
          />
          <span class="problem">A key is 32 bytes in base64: 44 characters</span>
        </label>
      )}
    </ResourcePage>
  )
}
