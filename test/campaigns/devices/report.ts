import { replayCommand } from '../harness/campaign.ts'
import type { DevicesResult } from './simulation.ts'

const LINES_SHOWN = 40

/** The broken promise, the events before it, and the command that replays it. */
export function report({ seed, steps, violation, settings, lines }: DevicesResult): string {
  const { expected, found } = violation!
  return [
    `Seed ${seed}:`,
    `expected: ${expected}`,
    `found:    ${found}`,
    `The seed's settings: ${JSON.stringify(settings)}`,
    `The last of ${lines.length} lines of its history:`,
    ...lines.slice(-LINES_SHOWN).map((line) => `  ${line}`),
    `Replay: ${replayOf(seed, steps)} --history`,
  ].join('\n')
}

export function replayOf(seed: number, steps: number): string {
  return replayCommand('devices', { seed, steps })
}
