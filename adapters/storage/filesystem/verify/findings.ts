import { StorageFailure } from '../../../../src/storage/errors.ts'
import type { VerifyNote, VerifyProblem } from './report.ts'

/** A damaged directory may have a problem in every frame. */
const KEPT_MAX = 1000

/** Where something stands. */
export interface Place {
  readonly file: string
  readonly offset: number
}

/** Problems and notes: all are counted, the first ones kept. */
export class Findings {
  readonly problems: VerifyProblem[] = []
  readonly notes: VerifyNote[] = []
  problemCount = 0
  noteCount = 0

  problem({ file, offset }: Place, problem: string, log?: string): void {
    this.problemCount++
    if (this.problems.length >= KEPT_MAX) return
    this.problems.push({ file, offset, problem, ...(log !== undefined && { log }) })
  }

  note(file: string, note: string, about: { readonly offset?: number; readonly log?: string } = {}): void {
    this.noteCount++
    if (this.notes.length < KEPT_MAX) this.notes.push({ file, ...about, note })
  }

  /** What was thrown about something at this place. A defect is thrown on. */
  failure(place: Place, error: unknown, log?: string): void {
    if (error instanceof RangeError) this.problem(place, error.message, log)
    else if (StorageFailure.is(error)) this.problem(place, withoutPlace(error, place), log)
    else throw error
  }
}

/** The message of `corrupt` names file and offset, which a problem has as members. */
function withoutPlace({ kind, message }: StorageFailure, { file }: Place): string {
  if (kind !== 'corrupt') return `it cannot be read: ${message}`
  const prefix = `${file} is damaged at offset `
  return message.startsWith(prefix) ? message.slice(message.indexOf(': ') + 2) : message
}
