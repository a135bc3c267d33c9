import { useReducer, useState } from 'preact/hooks'
import { fencingTokenProblem } from '../../../src/model/names.ts'
import type { AppendAck } from '../api/types.ts'
import { useConsole } from '../context.ts'
import { Confirm } from '../ui/confirm.tsx'
import { CurlButton } from '../ui/copy.tsx'
import { Checkbox, Field } from '../ui/field.tsx'
import { Problem } from '../ui/notice.tsx'
import { useLoad } from '../ui/use-load.ts'
import { useSubmit } from '../ui/use-submit.ts'
import { currentFencingToken, extentOf, fenceCall, fenceEffect, trimCall, trimEffect } from './commands.ts'
import { EncryptionKeyField, useEncryptionKey } from './encryption-key.tsx'
import type { StreamTarget } from './follow.ts'

/** Forms for the two commands, each with its effect. */
export function FenceAndTrim(props: {
  readonly basin: string
  readonly stream: string
  readonly cipher: string | null | undefined
}) {
  const { basin, stream, cipher } = props
  const [version, update] = useReducer((count: number) => count + 1, 0)
  const target: StreamTarget = { basin, stream, encryptionKey: useEncryptionKey(basin, stream) }
  const onDone = () => update(undefined)
  return (
    <>
      <div class="toolbar">
        <EncryptionKeyField basin={basin} stream={stream} cipher={cipher} onChange={onDone} />
      </div>
      <div class="columns">
        <Fence target={target} version={version} onDone={onDone} />
        <Trim target={target} version={version} onDone={onDone} />
      </div>
    </>
  )
}

interface CommandProps {
  readonly target: StreamTarget
  readonly version: number
  readonly onDone: () => void
}

function Fence({ target, version, onDone }: CommandProps) {
  const { client, announce } = useConsole()
  const [token, setToken] = useState('')
  const [isGuarded, setGuarded] = useState(true)
  const current = useLoad((signal) => currentFencingToken(client, target, signal), [version])
  const problem = fencingTokenProblem(token)
  const call = () => fenceCall(target, token, isGuarded ? current.data : undefined)
  const { isBusy, error, onSubmit } = useSubmit(async () => {
    const ack = await client.json<AppendAck>(call())
    announce(
      token === '' ? 'Cleared the fencing token' : `Set the fencing token in record ${ack.start.seq_num}`,
    )
    onDone()
  })
  return (
    <form class="panel" onSubmit={onSubmit}>
      <h2>Fence</h2>
      <p>Sets the token that cooperating writers name in their appends, so that only one of them succeeds.</p>
      <Field label="New fencing token" problem={problem} hint="Up to 36 bytes; empty clears it">
        {(id, describedBy) => (
          <input
            id={id}
            autocomplete="off"
            spellcheck={false}
            aria-describedby={describedBy}
            value={token}
            onInput={(event) => setToken(event.currentTarget.value)}
          />
        )}
      </Field>
      <Checkbox
        label="Only if the fencing token has not changed meanwhile"
        checked={isGuarded}
        onChange={setGuarded}
      />
      <Problem error={current.error} />
      <p class="effect" role="status">
        {fenceEffect(current.data, token)}
      </p>
      <Problem error={error} />
      <footer>
        <button type="submit" class="primary" disabled={isBusy || problem !== undefined}>
          {token === '' ? 'Clear the token' : 'Set the token'}
        </button>
        {problem === undefined && <CurlButton call={call} />}
      </footer>
    </form>
  )
}

function Trim({ target, version, onDone }: CommandProps) {
  const { client, announce } = useConsole()
  const [text, setText] = useState('')
  const [isConfirming, setConfirming] = useState(false)
  const extent = useLoad((signal) => extentOf(client, target, signal), [version])
  const seqNum = /^[0-9]+$/.test(text.trim()) ? Number(text) : undefined
  const isValid = seqNum !== undefined && Number.isSafeInteger(seqNum)
  const effect = isValid && extent.data !== undefined ? trimEffect(extent.data, seqNum) : undefined
  return (
    <>
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault()
          setConfirming(true)
        }}
      >
        <h2>Trim</h2>
        <p>Removes the oldest records. Sequence numbers do not change.</p>
        <Field
          label="First record to keep"
          problem={text === '' || isValid ? undefined : 'A whole number from 0 to 2^53 - 1'}
          hint={
            extent.data === undefined
              ? 'A sequence number'
              : `The stream holds ${extent.data.first ?? extent.data.tail.seq_num} up to its tail, ${extent.data.tail.seq_num}`
          }
        >
          {(id, describedBy) => (
            <input
              id={id}
              inputMode="numeric"
              autocomplete="off"
              aria-describedby={describedBy}
              value={text}
              onInput={(event) => setText(event.currentTarget.value)}
            />
          )}
        </Field>
        <Problem error={extent.error} />
        <p class="effect" role="status">
          {effect}
        </p>
        <footer>
          <button type="submit" class="danger" disabled={!isValid}>
            Trim
          </button>
          {isValid && <CurlButton call={() => trimCall(target, seqNum)} />}
        </footer>
      </form>
      {isConfirming && isValid && (
        <Confirm
          title="Trim stream"
          action="Trim"
          onClose={() => setConfirming(false)}
          onConfirm={async () => {
            await client.json<AppendAck>(trimCall(target, seqNum))
            announce('Trimmed')
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
