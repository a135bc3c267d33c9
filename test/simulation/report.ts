import type { RunResult } from './simulation.ts'

const LINES_SHOWN = 40

/** What was promised, what came instead, what happened before, and how to see it again. */
export function report({ seed, steps, isAtEnd, violation, settings, lines }: RunResult): string {
  const { expected, found } = violation!
  const when = isAtEnd ? `after step ${steps}, when everybody came to an end` : `at step ${steps}`
  return [
    `Seed ${seed}, ${when}:`,
    `expected: ${expected}`,
    `found:    ${found}`,
    '',
    `The seed's settings: ${JSON.stringify(settings)}`,
    `The last of ${lines.length} lines of its history:`,
    ...lines.slice(-LINES_SHOWN).map((line) => `  ${line}`),
    '',
    `Again: ${replayOf(seed, steps)}`,
    `All of its history: ${replayOf(seed, steps)} --history`,
  ].join('\n')
}

function replayOf(seed: number, steps: number): string {
  return `npm run sim -- --seed ${seed} --steps ${steps}`
}
