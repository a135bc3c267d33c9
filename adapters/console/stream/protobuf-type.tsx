import { useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { Select } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { protobufTypesOf } from './protobuf.ts'
import type { BodyFormat } from './record.ts'

const UNREADABLE = new Error(
  'This is not a descriptor set with types, as protoc --descriptor_set_out writes it',
)

/** Says how far the type of a message is known, and loads and chooses types. */
export function ProtobufType(props: {
  readonly format: BodyFormat
  /** The type for records that state none. */
  readonly chosen: string
  readonly onType: (type: string) => void
}) {
  const { format, chosen, onType } = props
  const { types, type } = format
  const { setProtobufTypes, announce } = useConsole()
  const [error, setError] = useState<Error>()
  const isKnown = types.has(`.${type}`)
  const load = async (file: File | undefined) => {
    if (file === undefined) return
    try {
      const loaded = protobufTypesOf(new Uint8Array(await file.arrayBuffer()))
      setProtobufTypes(new Map([...types, ...loaded]))
      setError(undefined)
      announce(`Loaded ${loaded.size} types`)
    } catch {
      setError(UNREADABLE)
    }
  }
  return (
    <>
      <p class="hint">
        {isKnown
          ? `Protobuf: ${type}`
          : `${type ? `The type ${type} is not loaded` : 'No type is known'}: fields have numbers, and values are guesses.`}
      </p>
      <div class="toolbar">
        <label class="inline" title="Written by protoc --include_imports --descriptor_set_out, or buf build">
          Descriptor set
          <input type="file" onChange={({ currentTarget }) => load(currentTarget.files?.[0])} />
        </label>
        {types.size > 0 && (!isKnown || type === chosen) && (
          <Select
            label="Message type"
            value={chosen}
            options={['', ...[...types.keys()].map((name) => name.slice(1))].map(
              (name) => [name, name] as const,
            )}
            onChange={onType}
          />
        )}
      </div>
      <Problem error={error} />
    </>
  )
}
