import { isWellFormed, utf8Length } from './bytes.ts'
import { invalid } from './errors.ts'
import { METADATA_BYTES_MAX, METADATA_ENTRIES_MAX } from './limits.ts'
import type { StreamCreation } from './stream-creation.ts'
import {
  assertInteger,
  assertMembers,
  type Check,
  type MembersOf,
  millisecondsOf,
  type Time,
  unchecked,
} from './validation.ts'

/** The rule of the member `metadata`. */
const assertMetadata: Check = (value, field) => {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(`\`${field}\` must be an object`, field)
  }
  const entries = Object.entries(value)
  if (entries.length > METADATA_ENTRIES_MAX) {
    throw invalid(
      `\`${field}\` must not exceed ${METADATA_ENTRIES_MAX} entries, not ${entries.length}`,
      field,
    )
  }
  let bytes = 0
  for (const [name, text] of entries) {
    if (typeof text !== 'string') throw invalid(`\`${field}\` must contain only strings`, field)
    if (!isWellFormed(name) || !isWellFormed(text)) throw invalid(`\`${field}\` must be valid Unicode`, field)
    bytes += utf8Length(name) + utf8Length(text)
  }
  if (bytes > METADATA_BYTES_MAX) {
    throw invalid(`\`${field}\` must not exceed ${METADATA_BYTES_MAX} bytes, not ${bytes}`, field)
  }
}

/** The rule of the member `expiry`. */
const assertExpiry: Check = (value, field) => {
  assertMembers(value, { at: unchecked, idleSeconds: unchecked }, field, `${field}.`)
  const { at, idleSeconds } = value as { readonly at?: Time | undefined; readonly idleSeconds?: unknown }
  if ((at === undefined) === (idleSeconds === undefined)) {
    throw invalid(`\`${field}\` must have either \`at\` or \`idleSeconds\``, field)
  }
  if (at === undefined) assertInteger(idleSeconds, `${field}.idleSeconds`)
  else assertInteger(millisecondsOf(at), `${field}.at`)
}

const assertFork: Check = (value, field) => {
  assertMembers(value, { stream: 'string', seqNum: assertInteger }, field, `${field}.`)
  if ((value as { readonly stream?: string | undefined }).stream === undefined) {
    throw invalid(`\`${field}.stream\` is required`, `${field}.stream`)
  }
}

const RULES: MembersOf<StreamCreation> = {
  metadata: assertMetadata,
  expiry: assertExpiry,
  fork: assertFork,
  records: unchecked,
  encryptionKey: unchecked,
}

/** Throws `invalid` for a creation with an invalid member. Records are checked where they are used. */
export function assertStreamCreation({ metadata, expiry, fork }: StreamCreation): void {
  assertMembers({ metadata, expiry, fork }, RULES, 'options')
}
