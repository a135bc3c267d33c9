import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type {
  BasinConfigInput,
  BasinReconfiguration,
  Cipher,
  StorageClass,
  StreamConfigInput,
  StreamReconfiguration,
  TimestampingMode,
} from '../../src/model/config.ts'
import { useConsole } from './context.ts'
import { formatDuration, secondsOf } from './format.ts'
import { ConfirmButton } from './ui/dialog.tsx'
import { Button, LoadStatus, Problem } from './ui/elements.tsx'
import { Checkbox, DurationField, type FormValues, SelectField, useSubmit } from './ui/fields.tsx'
import { useLoad } from './ui/load.ts'

/** A form for a configuration that exists. */
export function ConfigForm<Config>(props: {
  readonly load: (signal: AbortSignal) => Promise<Config>
  readonly save: (values: FormValues) => Promise<unknown>
  readonly children: (config: Config) => ComponentChildren
}) {
  const { load, save, children } = props
  const { announce } = useConsole()
  const loaded = useLoad(load, [])
  const { data, reload } = loaded
  const [discarded, setDiscarded] = useState(0)
  const { isBusy, error, onSubmit } = useSubmit(async (values) => {
    await save(values)
    reload()
    announce('Saved')
  })
  if (data === undefined) return <LoadStatus of={loaded} />
  return (
    // Another key shows what the server has.
    <form key={JSON.stringify([data, discarded])} class="panel" onSubmit={onSubmit}>
      {children(data)}
      <Problem error={error ?? loaded.error} />
      <footer>
        <button type="submit" class="primary" disabled={isBusy}>
          Save
        </button>
        <Button class="quiet" onClick={() => setDiscarded(discarded + 1)}>
          Discard changes
        </Button>
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
  const action = `Delete ${noun}`
  return (
    <section class="panel deletion">
      <h2>Delete this {noun}</h2>
      <p>Deletes it with {contents}. This cannot be undone.</p>
      <ConfirmButton class="danger" action={action} name={mustType ? name : undefined} onConfirm={onDelete}>
        <p>
          Deletes <strong>{name}</strong> with {contents}. This cannot be undone.
        </p>
      </ConfirmButton>
    </section>
  )
}

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
        initial={
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
        initial={minAge ? formatDuration(minAge) : minAge === 0 ? 'never' : undefined}
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
          <Checkbox label="By appends" name="createOnAppend" initial={config.createStreamOnAppend} />
          <Checkbox label="By reads" name="createOnRead" initial={config.createStreamOnRead} />
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
