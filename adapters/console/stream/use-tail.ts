import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { useConsole } from '../context.ts'
import { type FollowEvents, fixedStart, follow, type Start, type StreamTarget } from './follow.ts'
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
  /** The number of records between the last one received and the tail, as far as known. */
  readonly behind: number
  /** Whether the filter has seen every record. */
  readonly isFiltered: boolean
}

/** Where to continue, and the tail as last known. */
interface Progress {
  /** The `start` that this is about. */
  readonly of: Start
  from: Start
  tail: number
}

/**
 * Follows a stream. A pause ends the connection, and resuming continues after the last record: none is
 * skipped. A new `start` object restarts the tail.
 */
export function useTail(target: StreamTarget, start: Start, isPaused: boolean, filter: string): Tail {
  const { client } = useConsole()
  const { basin, stream, encryptionKey } = target
  const buffer = useRef(new RecordBuffer()).current
  const [state, setState] = useState<TailState>({ kind: 'connecting' })
  const [rate, setRate] = useState(0)
  const { isFiltered, render } = useFrames(buffer)
  const progress = useRef<Progress>({ of: start, from: start, tail: 0 })

  useEffect(() => {
    buffer.filter(filter)
    render()
  }, [filter])

  useEffect(() => {
    if (progress.current.of !== start) {
      progress.current = { of: start, from: start, tail: 0 }
      buffer.clear()
      render()
    }
    if (isPaused) {
      setState({ kind: 'paused' })
      return
    }
    const abort = new AbortController()
    const at = progress.current
    const events: FollowEvents = {
      onBatch({ records }) {
        const last = records.at(-1)
        if (last === undefined) return
        buffer.add(records)
        at.from = { kind: 'seq_num', value: last.seq_num + 1 }
        render()
      },
      onTail(tail) {
        at.from = fixedStart(at.from, tail)
        at.tail = tail.seq_num
        render()
      },
      onState(next) {
        setState(typeof next === 'string' ? { kind: next } : { kind: 'retrying', message: next.retrying })
      },
    }
    follow(client, { basin, stream, encryptionKey }, at.from, events, abort.signal).then(
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

  const { from, tail } = progress.current
  const behind = buffer.received > 0 && from.kind === 'seq_num' ? Math.max(0, tail - from.value) : 0
  return { buffer, state, rate, behind, isFiltered }
}

/** How long the filter works before it gives way to the page. */
const SCAN_MS = 8

/** Renders at most once per frame, however often it is called, and until the filter has seen every record. */
function useFrames(buffer: RecordBuffer): { readonly isFiltered: boolean; readonly render: () => void } {
  const [, update] = useReducer((count: number) => count + 1, 0)
  const frame = useRef(0)
  const isFiltered = useRef(true)
  useEffect(() => () => cancelAnimationFrame(frame.current), [])
  const render = () => {
    if (frame.current !== 0) return
    frame.current = requestAnimationFrame(() => {
      frame.current = 0
      const end = performance.now() + SCAN_MS
      isFiltered.current = buffer.scan(() => performance.now() > end)
      if (!isFiltered.current) render()
      update(undefined)
    })
  }
  return { isFiltered: isFiltered.current, render }
}
