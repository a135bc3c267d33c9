import { useReducer, useState } from 'preact/hooks'
import type { Stream } from '../../../src/api/stream.ts'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import type { StreamPosition } from '../../../src/model/position.ts'
import { fenceRecord, trimRecord } from '../../../src/model/record.ts'
import { useConsole } from '../context.ts'
import { plural } from '../format.ts'
import { appendCall, type CurlTarget } from '../snippets.ts'
import { useLoad } from '../ui/async.ts'
import { CurlButton } from '../ui/button.tsx'
import { Confirm } from '../ui/dialog.tsx'
import { Checkbox, TextField } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { EncryptionKeyField, useEncryptionKey } from './encryption-key.tsx'

/** Forms for the two commands, each with its effect. */
export function FenceAndTrim(props: {
  readonly basin: string
  readonly stream: string
  readonly cipher: string | null | undefined
}) {
  const { basin, stream, cipher } = props
  const [version, update] = useReducer((count: number) => count + 1, 0)
  const encryptionKey = useEncryptionKey(basin, stream)
  const target: CurlTarget = { basin, stream, encryptionKey }
  const handle = useConsole().connection.hw.basin(basin).stream(stream, { encryptionKey })
  const onDone = () => update(undefined)
  return (
    <>
      <div class="toolbar">
        <EncryptionKeyField basin={basin} stream={stream} cipher={cipher} onChange={onDone} />
      </div>
      <div class="columns">
        <Fence target={target} stream={handle} onDone={onDone} />
        <Trim target={target} stream={handle} version={version} onDone={onDone} />
      </div>
    </>
  )
}

interface CommandProps {
  readonly target: CurlTarget
  readonly stream: Stream
  readonly onDone: () => void
}

function Fence({ target, stream, onDone }: CommandProps) {
  const { announce } = useConsole()
  const [token, setToken] = useState('')
  const [isGuarded, setGuarded] = useState(false)
  const [current, setCurrent] = useState('')
  const problem = fencingTokenProblem(token)
  const conditions = isGuarded ? { fencingToken: current } : {}
  const [confirming, setConfirming] = useState<string>()
  const fence = async (next: string) => {
    const { start } = await stream.fence(next, conditions)
    announce(next === '' ? 'Cleared the fencing token' : `Set the fencing token in record ${start.seqNum}`)
    setConfirming(undefined)
    setToken('')
    onDone()
  }
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault()
        setConfirming(token)
      }}
    >
      <h2>Fence</h2>
      <p>Sets the token that cooperating writers name in their appends.</p>
      <TextField
        label="New fencing token"
        hint="1 to 36 bytes"
        problem={problem}
        value={token}
        onInput={setToken}
      />
      <Checkbox
        label="Only if the stream has a certain token now"
        checked={isGuarded}
        onChange={setGuarded}
      />
      {isGuarded && (
        <TextField
          label="Current fencing token"
          hint="Empty: the stream must have none. If it has another one, the error names it."
          value={current}
          onInput={setCurrent}
        />
      )}
      <footer>
        <button type="submit" class="primary" disabled={token === '' || problem !== undefined}>
          Set the token
        </button>
        {token !== '' && problem === undefined && (
          <CurlButton call={() => appendCall(target, [fenceRecord(token)], conditions)} />
        )}
        <span class="spacer" />
        <button type="button" class="quiet danger" onClick={() => setConfirming('')}>
          Remove the fence
        </button>
      </footer>
      {confirming !== undefined && (
        <Confirm
          title={confirming === '' ? 'Remove the fence' : 'Set the fencing token'}
          action={confirming === '' ? 'Remove the fence' : 'Set the token'}
          onClose={() => setConfirming(undefined)}
          onConfirm={() => fence(confirming)}
        >
          <p>{fenceEffect(confirming)}</p>
        </Confirm>
      )}
    </form>
  )
}

function Trim({ target, stream, version, onDone }: CommandProps & { readonly version: number }) {
  const { announce } = useConsole()
  const [text, setText] = useState('')
  const [isConfirming, setConfirming] = useState(false)
  const [trimPoint, setTrimPoint] = useState(0)
  const extent = useLoad((signal) => extentOf(stream, signal), [version])
  const held = extent.data && withoutTrimmed(extent.data, trimPoint)
  const seqNum = /^[0-9]+$/.test(text.trim()) ? Number(text) : undefined
  const isValid = seqNum !== undefined && Number.isSafeInteger(seqNum)
  const effect = isValid && held !== undefined ? trimEffect(held, seqNum) : undefined
  return (
    <>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          // Records may have arrived since the effect was computed.
          extent.reload()
          setConfirming(true)
        }}
      >
        <h2>Trim</h2>
        <p>Removes the oldest records. Sequence numbers do not change.</p>
        <TextField
          label="First record to keep"
          problem={text === '' || isValid ? undefined : 'A whole number from 0 to 2^53 - 1'}
          hint={
            held === undefined
              ? 'A sequence number'
              : `The stream holds ${held.first ?? held.tail.seqNum} up to its tail, ${held.tail.seqNum}`
          }
          isNumber
          value={text}
          onInput={setText}
        />
        <Problem error={extent.error} />
        <p class="effect" role="status">
          {effect}
        </p>
        <footer>
          <button type="submit" class="danger" disabled={!isValid}>
            Trim
          </button>
          {isValid && <CurlButton call={() => appendCall(target, [trimRecord(seqNum)], {})} />}
        </footer>
      </form>
      {isConfirming && isValid && (
        <Confirm
          title="Trim stream"
          action="Trim"
          onClose={() => setConfirming(false)}
          onConfirm={async () => {
            const { end } = await stream.trim(seqNum)
            setTrimPoint(Math.min(seqNum, end.seqNum))
            announce('Trimmed; the records disappear within seconds')
            setConfirming(false)
            setText('')
            onDone()
          }}
        >
          <p>{effect} This cannot be undone.</p>
        </Confirm>
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

/** Leaves out the records below `trimPoint`, which reads still return for a few seconds. */
export function withoutTrimmed({ first, tail }: Extent, trimPoint: number): Extent {
  const remaining = first === undefined ? tail.seqNum : Math.max(first, trimPoint)
  return { first: remaining < tail.seqNum ? remaining : undefined, tail }
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
