import { useRef, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import type { StreamPosition } from '../../../src/model/position.ts'
import { fenceRecord, trimRecord } from '../../../src/model/record.ts'
import { useConsole } from '../context.ts'
import { plural } from '../format.ts'
import { appendCall, type CurlTarget } from '../snippets.ts'
import { FormDialog } from '../ui/dialog.tsx'
import { Button, CurlButton, Problem } from '../ui/elements.tsx'
import { Checkbox, type FormValues, TextField, valuesOf } from '../ui/fields.tsx'
import { useLoad } from '../ui/load.ts'

/** Forms for the two commands, each with its effect. */
export function FenceAndTrim({ target }: { readonly target: CurlTarget }) {
  const { basin, stream, encryptionKey } = target
  const handle = useConsole().connection.hw.basin(basin).stream(stream, { encryptionKey })
  return (
    <div class="columns">
      <Fence target={target} stream={handle} />
      <Trim target={target} stream={handle} />
    </div>
  )
}

interface CommandProps {
  readonly target: CurlTarget
  readonly stream: Stream
}

function Fence({ target, stream }: CommandProps) {
  const { announce } = useConsole()
  const form = useRef<HTMLFormElement>(null)
  const [isGuarded, setGuarded] = useState(false)
  /** The values to confirm; an empty token removes the fence. */
  const [confirming, setConfirming] = useState<FormValues>()
  const conditionsOf = ({ current }: FormValues) => (current === undefined ? {} : { fencingToken: current })
  const fence = async ({ token = '', ...conditions }: FormValues) => {
    const { start } = await stream.fence(token, conditionsOf(conditions))
    announce(token === '' ? 'Cleared the fencing token' : `Set the fencing token in record ${start.seqNum}`)
    setConfirming(undefined)
    form.current?.reset()
  }
  const action = confirming?.token === '' ? 'Remove the fence' : 'Set the token'
  return (
    <>
      <form
        ref={form}
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          setConfirming(valuesOf(event.currentTarget))
        }}
        onReset={() => setGuarded(false)}
      >
        <h2>Fence</h2>
        <p>Sets the token that cooperating writers name in their appends.</p>
        <TextField
          label="New fencing token"
          name="token"
          hint="1 to 36 bytes"
          check={fencingTokenProblem}
          isRequired
        />
        <Checkbox label="Only if the stream has a certain token now" onChange={setGuarded} />
        {isGuarded && (
          <TextField
            label="Current fencing token"
            name="current"
            hint="Empty: the stream must have none. If it has another one, the error names it."
          />
        )}
        <footer>
          <button type="submit" class="primary">
            Set the token
          </button>
          <CurlButton
            call={() => {
              const { token = '', ...conditions } = valuesOf(form.current!)
              return appendCall(target, [fenceRecord(token)], conditionsOf(conditions))
            }}
          />
          <span class="spacer" />
          <Button
            class="quiet danger"
            onClick={() => setConfirming({ ...valuesOf(form.current!), token: '' })}
          >
            Remove the fence
          </Button>
        </footer>
      </form>
      {confirming !== undefined && (
        <FormDialog
          title={action}
          action={action}
          isDangerous
          onClose={() => setConfirming(undefined)}
          onSubmit={() => fence(confirming)}
        >
          <p>{fenceEffect(confirming.token ?? '')}</p>
        </FormDialog>
      )}
    </>
  )
}

/** How long after each other the extent of a stream is read, in milliseconds. */
const EXTENT_INTERVAL_MS = 2000

function Trim({ target, stream }: CommandProps) {
  const { announce } = useConsole()
  const form = useRef<HTMLFormElement>(null)
  const [seqNum, setSeqNum] = useState<number>()
  const [isConfirming, setConfirming] = useState(false)
  const { data: extent, error } = useLoad((signal) => extentOf(stream, signal), [], EXTENT_INTERVAL_MS)
  const effect = seqNum !== undefined && extent !== undefined ? trimEffect(extent, seqNum) : undefined
  const trim = async () => {
    await stream.trim(seqNum!)
    announce('Trimmed; the records disappear within seconds')
    setConfirming(false)
    form.current?.reset()
  }
  return (
    <>
      <form
        ref={form}
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          setConfirming(true)
        }}
        onReset={() => setSeqNum(undefined)}
      >
        <h2>Trim</h2>
        <p>Removes the oldest records. Sequence numbers do not change.</p>
        <TextField
          label="First record to keep"
          name="seqNum"
          hint={
            extent === undefined
              ? 'A sequence number'
              : `The stream holds ${extent.first ?? extent.tail.seqNum} up to its tail, ${extent.tail.seqNum}`
          }
          isNumber
          isRequired
          onInput={(text) => setSeqNum(/^\d+$/.test(text) ? Number(text) : undefined)}
        />
        <Problem error={error} />
        <p class="effect" role="status">
          {effect}
        </p>
        <footer>
          <button type="submit" class="danger">
            Trim
          </button>
          {seqNum !== undefined && <CurlButton call={() => appendCall(target, [trimRecord(seqNum)], {})} />}
        </footer>
      </form>
      {isConfirming && seqNum !== undefined && (
        <FormDialog
          title="Trim stream"
          action="Trim"
          isDangerous
          onClose={() => setConfirming(false)}
          onSubmit={trim}
        >
          <p>{effect} This cannot be undone.</p>
        </FormDialog>
      )}
    </>
  )
}

/** The extent of a stream: the first remaining record, if there is one, and the tail. */
interface Extent {
  readonly first: number | undefined
  readonly tail: StreamPosition
}

async function extentOf(stream: Stream, signal: AbortSignal): Promise<Extent> {
  const tail = await stream.checkTail({ signal })
  const { records } = await stream.readBatch({ seqNum: 0, count: 1 }, { as: 'bytes', signal })
  return { first: records[0]?.seqNum, tail }
}

/** Returns the effect of a trim in words. */
export function trimEffect({ first, tail }: Extent, seqNum: number): string {
  if (first === undefined) return 'The stream holds no records: nothing is removed.'
  if (seqNum <= first) return `Nothing is removed: the first record is ${first}.`
  if (seqNum > tail.seqNum) {
    const count = plural(tail.seqNum - first, 'record')
    return `Removes all ${count}, and the trim command itself. The tail becomes ${tail.seqNum + 1}.`
  }
  const removed = `Removes ${plural(seqNum - first, 'record')}: ${first} to ${seqNum - 1}.`
  const remaining = tail.seqNum - seqNum
  if (remaining === 0) return `${removed} Only the trim command remains.`
  return `${removed} ${plural(remaining, 'record')} and the trim command remain; ${seqNum} is the first.`
}

/** Returns the effect of a fence in words. */
function fenceEffect(token: string): string {
  if (token === '') return 'The stream will have no fencing token: appends that name one are rejected.'
  const other = `Appends that name another token than ${JSON.stringify(token)} will be rejected with 412.`
  return `${other} Appends that name none are still accepted.`
}
