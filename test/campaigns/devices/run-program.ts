import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { bundleProgram } from '../../support/child-process.ts'

const OUTPUT_BYTES_MAX = 256 * 1024 * 1024

const program = bundleProgram(new URL('./program.ts', import.meta.url))

/**
 * Runs seeds as `npm run devices` does and returns the lines that it prints. Vitest loads code in other turns
 * of the event loop, so a seed has another history there.
 */
export async function runProgram(options: {
  readonly seed: number
  readonly seeds?: number
  readonly steps: number
}): Promise<string[]> {
  const CAMPAIGN = JSON.stringify({ name: 'devices', options: { ...options, history: true } })
  const args = ['--enable-source-maps', await program]
  const { stdout } = await promisify(execFile)(process.execPath, args, {
    env: { ...process.env, CAMPAIGN },
    maxBuffer: OUTPUT_BYTES_MAX,
  }).catch((error) => {
    // The exit code says that a seed has failed; the output says which one.
    if (typeof error.stdout === 'string') return error as { stdout: string }
    throw error
  })
  return stdout.trimEnd().split('\n')
}
