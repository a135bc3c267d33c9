import { type Engine, open } from 'headwater'
import { indexedDb } from 'headwater/indexeddb'

/** Opens the database of the demo. Each frame has an engine of its own. */
export function openDemo(): Promise<Engine> {
  return open({ storage: indexedDb('headwater-demo') })
}

/** The stream that the frames share. */
export function demoStream(hw: Engine) {
  return hw.basin('demo-app').stream('chat')
}

/** A record as the frames show it. */
export interface Line {
  readonly seqNum: number
  readonly body: string
  readonly time: string
}

/** The most lines that a frame keeps. */
const LINES_MAX = 200

/** Calls back with the last records, first those that are stored, until the signal aborts. */
export async function followDemo(
  hw: Engine,
  signal: AbortSignal,
  onLines: (lines: readonly Line[]) => void,
): Promise<void> {
  let lines: Line[] = []
  for await (const batch of demoStream(hw)
    .follow({ tailOffset: LINES_MAX, clamp: true }, { signal, create: true })
    .batches()) {
    const added = batch.records.map(({ seqNum, body, timestamp }) => ({
      seqNum,
      body,
      time: new Date(timestamp).toLocaleTimeString(),
    }))
    lines = [...lines, ...added].slice(-LINES_MAX)
    onLines(lines)
  }
}
