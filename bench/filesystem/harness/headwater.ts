import { filesystem } from '../../../adapters/storage/filesystem/index.ts'
import { type Headwater, open, type Stream } from '../../../src/index.ts'

export function openHeadwater(directory: string): Promise<Headwater> {
  return open({ storage: filesystem(directory), onBackgroundError: failLoudly })
}

export function streamNumber(headwater: Headwater, number: number): Stream {
  return headwater.basin('bench').stream(`streams/${number}`)
}

/** What fails beside the work would make it look faster than it is. */
function failLoudly(error: unknown): void {
  console.error(error)
  process.exitCode = 1
}
