import type {
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  StorageClass,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from '../../src/model/config.ts'
import { formatDuration, secondsOf } from './format.ts'
import { Choice, DurationField, type FormValues, SelectField } from './ui/fields.tsx'

/** The fields of a stream configuration. `inherited` is the text of what is not set. */
export function StreamConfigFields(props: {
  readonly config?: StreamConfigInput | undefined
  readonly inherited: string
  readonly retentionHint?: string | undefined
}) {
  const { config = {}, retentionHint } = props
  const inherited = ['', props.inherited] as const
  const { retentionPolicy, deleteOnEmpty, timestamping, storageClass = '' } = config
  const minAge = deleteOnEmpty?.minAgeSeconds
  return (
    <div class="fields">
      <DurationField
        label="Retention"
        name="retention"
        hint={retentionHint}
        placeholder={props.inherited}
        word="forever"
        defaultValue={
          typeof retentionPolicy === 'object'
            ? formatDuration(retentionPolicy.ageSeconds)
            : retentionPolicy && 'forever'
        }
      />
      <DurationField
        label="Delete when empty for"
        name="deleteOnEmpty"
        placeholder={props.inherited}
        word="never"
        defaultValue={minAge ? formatDuration(minAge) : minAge === 0 ? 'never' : undefined}
      />
      <SelectField
        label="Timestamps"
        name="mode"
        value={timestamping?.mode ?? ''}
        options={[
          inherited,
          ['client-prefer', 'From the client, or arrival'],
          ['client-require', 'From the client, required'],
          ['arrival', 'Arrival'],
        ]}
      />
      <SelectField
        label="Future timestamps"
        name="uncapped"
        value={String(timestamping?.uncapped ?? '')}
        options={[inherited, ['false', 'Capped at arrival'], ['true', 'Allowed']]}
      />
      <SelectField
        label="Storage class"
        name="storageClass"
        value={storageClass}
        options={[inherited, ['express', 'Express'], ['standard', 'Standard']]}
      />
    </div>
  )
}

/** The fields of a basin configuration. */
export function BasinConfigFields({ config }: { readonly config: BasinConfigInput }) {
  return (
    <>
      <fieldset>
        <legend>Create streams on first use</legend>
        <div class="row-of-checks">
          <Choice
            label="By appends"
            name="createOnAppend"
            defaultChecked={config.createStreamOnAppend ?? false}
          />
          <Choice label="By reads" name="createOnRead" defaultChecked={config.createStreamOnRead ?? false} />
        </div>
      </fieldset>
      <fieldset>
        <legend>Defaults of new streams</legend>
        <StreamConfigFields
          config={config.defaultStreamConfig}
          inherited="Server default"
          retentionHint="The server default is 7 days, unless the server was started with another one."
        />
      </fieldset>
      <SelectField
        label="Encryption of new streams"
        name="cipher"
        hint="Records are encrypted with a key that each request carries. Existing streams do not change."
        value={config.streamCipher ?? ''}
        options={[
          ['', 'None'],
          ['aes-256-gcm', 'AES-256-GCM'],
          ['aegis-256', 'AEGIS-256'],
        ]}
      />
    </>
  )
}

/**
 * The configuration of {@link StreamConfigFields}. Inherited settings are null: a new resource gets the
 * default, and a change returns to it.
 */
export function streamConfigOf(values: FormValues): StreamReconfiguration {
  const { retention, deleteOnEmpty, mode, uncapped, storageClass } = values
  return {
    storageClass: (storageClass as StorageClass) || null,
    retentionPolicy:
      retention === 'forever' ? 'infinite' : retention ? { ageSeconds: secondsOf(retention)! } : null,
    timestamping:
      mode || uncapped
        ? { mode: (mode as TimestampingMode) || null, uncapped: uncapped ? uncapped === 'true' : null }
        : null,
    deleteOnEmpty: deleteOnEmpty
      ? { minAgeSeconds: deleteOnEmpty === 'never' ? 0 : secondsOf(deleteOnEmpty)! }
      : null,
  }
}

/** The configuration of {@link BasinConfigFields}. */
export function basinConfigOf(values: FormValues): BasinReconfiguration {
  const streams = streamConfigOf(values)
  const isDefault = Object.values(streams).every((setting) => setting === null)
  return {
    defaultStreamConfig: isDefault ? null : streams,
    streamCipher: (values.cipher as Cipher) || null,
    createStreamOnAppend: values.createOnAppend !== undefined,
    createStreamOnRead: values.createOnRead !== undefined,
  }
}
