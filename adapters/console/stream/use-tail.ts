import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { StreamPosition } from '../../../src/model/position.ts'
import type { SequencedRecord } from '../../../src/model/record.ts'
import { useConsole } from '../context.ts'
import type { CurlTarget } from '../curl.ts'
import { RecordBuffer } from './record-buffer.ts'
import { fixedStart, follow, type Start } from './tail.ts'

/** The state of a live tail. */
export type TailState =
  | { readonly kind: 'connecting' | 'following' | 'paused' }
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
export function useTail(target: CurlTarget, start: Start, isPaused: boolean, filter: string): Tail {
  const { connection } = useConsole()
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
    const isReceiving = () =>
      setState((before) => (before.kind === 'following' ? before : { kind: 'following' }))
    setState({ kind: 'connecting' })
    const events = {
      onRecords(records: readonly SequencedRecord[]) {
        buffer.add(records)
        at.from = { seqNum: records.at(-1)!.seqNum + 1 }
        isReceiving()
        render()
      },
      onTail(tail: StreamPosition) {
        at.from = fixedStart(at.from, tail)
        at.tail = tail.seqNum
        isReceiving()
        render()
      },
      onReconnect({ message }: Error) {
        setState({ kind: 'retrying', message })
      },
    }
    follow(connection, { basin, stream, encryptionKey }, at.from, events, abort.signal).catch(
      (error) => abort.signal.aborted || setState({ kind: 'failed', error }),
    )
    return () => abort.abort()
  }, [connection, basin, stream, encryptionKey, start, isPaused])

  useEffect(() => {
    let before = buffer.received
    const timer = setInterval(() => {
      setRate(Math.max(0, buffer.received - before))
      before = buffer.received
    }, 1000)
    return () => clearInterval(timer)
  }, [])

  const { from, tail } = progress.current
  const behind = buffer.received > 0 ? Math.max(0, tail - (from.seqNum ?? tail)) : 0
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
