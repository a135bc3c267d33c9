import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { type FollowEvents, follow, type Start, type StreamTarget } from './follow.ts'
import { RecordBuffer } from './record-buffer.ts'

/** The state of a live tail. */
export type TailState =
  | { readonly kind: 'connecting' | 'following' | 'paused' | 'ended' }
  | { readonly kind: 'retrying'; readonly message: string }
  | { readonly kind: 'failed'; readonly error: Error }

export interface Tail {
  readonly buffer: RecordBuffer
  readonly state: TailState
  /** Records per second. */
  readonly rate: number
  /** How many records lie between the last one received and the tail, as far as known. */
  readonly behind: number
}

/**
 * Follows a stream. A pause ends the connection, and resuming continues after the last record: none is
 * skipped. A new `start` object begins anew.
 */
export function useTail(target: StreamTarget, start: Start, isPaused: boolean): Tail {
  const { client } = useConsole()
  const { basin, stream, encryptionKey } = target
  const buffer = useRef(new RecordBuffer()).current
  const [state, setState] = useState<TailState>({ kind: 'connecting' })
  const [rate, setRate] = useState(0)
  const render = useRender()
  // Where to continue after a pause, and the tail as last known.
  const position = useRef<{ start: Start; next: number | undefined; tail: number }>({
    start,
    next: undefined,
    tail: 0,
  })

  useEffect(() => {
    if (position.current.start !== start) {
      position.current = { start, next: undefined, tail: 0 }
      buffer.clear()
      render()
    }
    if (isPaused) {
      setState({ kind: 'paused' })
      return
    }
    const abort = new AbortController()
    const at = position.current
    const events: FollowEvents = {
      onBatch({ records }) {
        buffer.add(records)
        at.next = records.at(-1)!.seq_num + 1
        render()
      },
      onTail(tail) {
        at.next = Math.max(at.next ?? 0, tail.seq_num)
        at.tail = tail.seq_num
        render()
      },
      onState(next) {
        setState(typeof next === 'string' ? { kind: next } : { kind: 'retrying', message: next.retrying })
      },
    }
    const from: Start = at.next === undefined ? start : { kind: 'seq_num', value: at.next }
    follow(client, { basin, stream, encryptionKey }, from, events, abort.signal).then(
      () => abort.signal.aborted || setState({ kind: 'ended' }),
      (error) => abort.signal.aborted || setState({ kind: 'failed', error }),
    )
    return () => abort.abort()
  }, [client, basin, stream, encryptionKey, start, isPaused])

  useEffect(() => {
    let before = buffer.received
    const timer = setInterval(() => {
      setRate(Math.max(0, buffer.received - before))
      before = buffer.received
    }, 1000)
    return () => clearInterval(timer)
  }, [])

  const { next = 0, tail } = position.current
  return { buffer, state, rate, behind: Math.max(0, tail - next) }
}

/** Renders at most once per frame, however often it is called. */
function useRender(): () => void {
  const [, update] = useReducer((count: number) => count + 1, 0)
  const frame = useRef(0)
  useEffect(() => () => cancelAnimationFrame(frame.current), [])
  return () => {
    if (frame.current !== 0) return
    frame.current = requestAnimationFrame(() => {
      frame.current = 0
      update(undefined)
    })
  }
}
