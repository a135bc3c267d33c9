import { useState } from 'preact/hooks'
import { decodeBase64 } from '../../../src/model/bytes.ts'
import { useConsole } from '../context.ts'

/** The encryption key that was entered for a stream; empty if none was. */
export function useEncryptionKey(basin: string, stream: string): string {
  return useConsole().encryptionKeys.get(nameOf(basin, stream)) ?? ''
}

/** A field for the encryption key of a stream, unless it has no cipher. The key is kept in memory only. */
export function EncryptionKeyField(props: {
  readonly basin: string
  readonly stream: string
  readonly cipher: string | null | undefined
  /** Called after the key has changed. */
  readonly onChange: () => void
}) {
  const { basin, stream, cipher, onChange } = props
  const { encryptionKeys } = useConsole()
  const key = useEncryptionKey(basin, stream)
  // Records that arrive must not replace what is being typed.
  const [typed, setTyped] = useState(key)
  if (cipher === null) return null
  const isComplete = key === '' || decodeBase64(key)?.length === 32
  return (
    <label class="inline">
      Encryption key
      <input
        type="password"
        autocomplete="off"
        spellcheck={false}
        placeholder="32 bytes in base64"
        aria-invalid={!isComplete}
        title="32 bytes in base64, 44 characters. Kept in memory only."
        value={typed}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => {
          encryptionKeys.set(nameOf(basin, stream), event.currentTarget.value.trim())
          onChange()
        }}
      />
      {!isComplete && <span class="problem">A key is 32 bytes in base64: 44 characters</span>}
    </label>
  )
}

function nameOf(basin: string, stream: string): string {
  return JSON.stringify([basin, stream])
}
