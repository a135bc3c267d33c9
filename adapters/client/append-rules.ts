import type { AppendBatch } from '../../src/model/append-input.ts'
import type { HeadwaterError } from '../../src/model/errors.ts'

/**
 * What makes it safe to send a batch again that an earlier attempt may have stored: its number among those of
 * its producer, by which the server discards a duplicate; or its condition, which a second copy would not
 * meet, because its first record would get another sequence number. Undefined if nothing does.
 */
export type Safeguard = 'producer' | 'condition' | undefined

/** Returns the safeguard of a batch. */
export function safeguardOf({
  producer,
  matchSeqNum,
}: Pick<AppendBatch, 'producer' | 'matchSeqNum'>): Safeguard {
  if (producer !== undefined) return 'producer'
  return matchSeqNum === undefined ? undefined : 'condition'
}

/**
 * What is known of a batch that an earlier attempt may have stored, when the last attempt fails:
 *
 * - `rejected`: no attempt has stored it
 * - `unknown`: it may be stored
 * - `look`: the records at the place of the batch tell whether it is stored
 */
export type Verdict = 'rejected' | 'unknown' | 'look'

/** Returns the verdict on a batch that was sent more than once, from the error of the last attempt. */
export function verdictOn(
  batch: Pick<AppendBatch, 'producer' | 'matchSeqNum'>,
  { code, status, retryable, mayHaveEffects, seqNum }: HeadwaterError,
): Verdict {
  switch (safeguardOf(batch)) {
    case undefined:
      return mayHaveEffects ? 'unknown' : 'rejected'
    case 'producer':
      // The server checks the request and its token (400, 401 and 403), then whether the batch is stored, then
      // everything else. 403 is the status of `producer_fenced` too: another epoch hides the batches before.
      return mayHaveEffects || retryable || status < 404 ? 'unknown' : 'rejected'
    case 'condition':
      if (code !== 'seq_num_mismatch' && code !== 'fencing_token_mismatch') return 'unknown'
      // Nothing has got the sequence number of the batch, and a copy on its way fails as this one.
      return seqNum !== undefined && seqNum <= batch.matchSeqNum! ? 'rejected' : 'look'
  }
}
