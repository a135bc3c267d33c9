import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import { fenceRecord, trimRecord } from '../../../src/model/record.ts'
import type { StreamTarget } from '../connection.ts'
import { useConsole, useLoad } from '../context.ts'
import { plural } from '../format.ts'
import { appendCall, type CurlCall } from '../snippets.ts'
import { FormDialog } from '../ui/dialog.tsx'
import { CurlButton, Problem } from '../ui/elements.tsx'
import { Choice, type FormValues, TextField, valuesOf, WHOLE_NUMBER } from '../ui/fields.tsx'

/** Forms for the two commands, each with its effect. */
export function FenceAndTrim({ target }: { readonly target: StreamTarget }) {
  return (
    <div class="columns">
      <Fence target={target} />
      <Trim target={target} />
    </div>
  )
}

function Fence({ target }: { readonly target: StreamTarget }) {
  const { announce } = useConsole()
  const conditionsOf = ({ isGuarded, current }: FormValues) =>
    isGuarded === undefined ? {} : { fencingToken: current ?? '' }
  return (
    <CommandForm
      title="Fence"
      about="Sets the token that cooperating writers name in their appends."
      action="Set the token"
      effectOf={({ token }) => token !== undefined && fenceEffect(token)}
      callOf={(values) => appendCall(target, [fenceRecord(values.token ?? '')], conditionsOf(values))}
      onConfirm={async ({ token = '', ...values }) => {
        const { start } = await target.handle.fence(token, conditionsOf(values))
        announce(`${token === '' ? 'Cleared' : 'Set'} the fencing token in record ${start.seqNum}`)
      }}
    >
      {({ isGuarded }) => (
        <>
          <TextField
            label="New fencing token"
            name="token"
            hint="Up to 36 bytes; empty removes the fence"
            check={fencingTokenProblem}
          />
          <Choice label="Only if the stream has a certain token now" name="isGuarded" />
          {isGuarded && (
            <TextField
              label="Current fencing token"
              name="current"
              hint="Empty: the stream must have none. If it has another one, the error names it."
            />
          )}
        </>
      )}
    </CommandForm>
  )
}

/** How often the extent of a stream is read, in milliseconds. */
const EXTENT_INTERVAL_MS = 2000

function Trim({ target }: { readonly target: StreamTarget }) {
  const { announce } = useConsole()
  const { data: extent, error } = useLoad((signal) => extentOf(target.handle, signal), [], EXTENT_INTERVAL_MS)
  const hint = extent && `The stream holds ${extent.first} up to its tail, ${extent.tail}`
  return (
    <CommandForm
      title="Trim"
      about="Removes the oldest records for good. Sequence numbers do not change."
      action="Trim"
      effectOf={({ seqNum = '' }) => /^\d+$/.test(seqNum) && extent && trimEffect(extent, Number(seqNum))}
      callOf={({ seqNum }) => appendCall(target, [trimRecord(Number(seqNum))], {})}
      onConfirm={async ({ seqNum }) => {
        await target.handle.trim(Number(seqNum))
        announce('Trimmed; the records disappear within seconds')
      }}
    >
      {() => (
        <>
          <TextField
            label="First record to keep"
            name="seqNum"
            hint={hint ?? 'A sequence number'}
            required
            {...WHOLE_NUMBER}
          />
          <Problem error={error} />
        </>
      )}
    </CommandForm>
  )
}

/** A form that states the effect of a command for its values, and again before it is carried out. */
function CommandForm(props: {
  readonly title: string
  readonly about: string
  readonly action: string
  readonly effectOf: (values: FormValues) => string | false | undefined
  readonly callOf: (values: FormValues) => CurlCall
  readonly onConfirm: (values: FormValues) => Promise<void>
  readonly children: (values: FormValues) => ComponentChildren
}) {
  const { title, about, action, effectOf, callOf, onConfirm, children } = props
  const [values, setValues] = useState<FormValues>({})
  const [isConfirming, setConfirming] = useState(false)
  const [version, setVersion] = useState(0)
  const confirm = async () => {
    await onConfirm(values)
    setConfirming(false)
    // Empties the form.
    setValues({})
    setVersion(version + 1)
  }
  return (
    <>
      <form
        key={version}
        class="panel"
        onInput={(event) => setValues(valuesOf(event.currentTarget))}
        onSubmit={(event) => {
          event.preventDefault()
          setValues(valuesOf(event.currentTarget))
          setConfirming(true)
        }}
      >
        <h2>{title}</h2>
        <p>{about}</p>
        {children(values)}
        <p class="effect" role="status">
          {effectOf(values)}
        </p>
        <footer>
          <button type="submit" class="danger">
            {action}
          </button>
          {effectOf(values) && <CurlButton call={() => callOf(values)} />}
        </footer>
      </form>
      {isConfirming && (
        <FormDialog
          title={title}
          action={action}
          isDangerous
          onClose={() => setConfirming(false)}
          onSubmit={confirm}
        >
          <p>{effectOf(values)}</p>
        </FormDialog>
      )}
    </>
  )
}

/** The sequence numbers of the first record that remains in a stream, and of the next one. */
interface Extent {
  readonly first: number
  readonly tail: number
}

async function extentOf(stream: Stream, signal: AbortSignal): Promise<Extent> {
  const tail = (await stream.checkTail({ signal })).seqNum
  const { records } = await stream.readBatch({ seqNum: 0, count: 1, clamp: true }, { as: 'bytes', signal })
  return { first: records[0]?.seqNum ?? tail, tail }
}

/** Returns the effect of a trim in words. */
export function trimEffect({ first, tail }: Extent, seqNum: number): string {
  if (first === tail) return 'The stream holds no records: nothing is removed.'
  if (seqNum <= first) return `Nothing is removed: the first record is ${first}.`
  if (seqNum > tail) {
    const all = plural(tail - first, 'record')
    return `Removes all ${all}, and the trim command itself. The tail becomes ${tail + 1}.`
  }
  const removed = `Removes ${plural(seqNum - first, 'record')}: ${first} to ${seqNum - 1}.`
  if (seqNum === tail) return `${removed} Only the trim command remains.`
  return `${removed} ${plural(tail - seqNum, 'record')} and the trim command remain; ${seqNum} is the first.`
}

/** Returns the effect of a fence in words. */
function fenceEffect(token: string): string {
  if (token === '') return 'The stream will have no fencing token: appends that name one are rejected.'
  const other = `Appends that name another token than ${JSON.stringify(token)} will be rejected with 412.`
  return `${other} Appends that name none are still accepted.`
}
