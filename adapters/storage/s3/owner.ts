import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '../../../src/runtime/clock.ts'
import { StorageFailure } from '../../../src/storage/errors.ts'
import type { S3Bucket } from './s3-bucket.ts'

const KEY = 'owner'
const RENEWAL_MS = 10_000
/** An owner that has not renewed its object for so long is gone. */
const ALIVE_MS = 3 * RENEWAL_MS

/**
 * Tells other processes that this one has the bucket open, until the function is called that it resolves to.
 * Rejects with `blocked` if another process has it open, unless `takeOver` is set. For error messages only:
 * writers exclude each other by the numbers of their pieces, so an owner that is taken for dead does no harm.
 *
 * @param assertWriter Rejects with `blocked` if another process has taken over.
 * @param onLost Called once it has.
 */
export async function becomeOwner(
  bucket: S3Bucket,
  clock: Clock,
  takeOver: boolean,
  assertWriter: () => Promise<void>,
  onLost: (error: unknown) => void,
): Promise<() => Promise<void>> {
  const own = `process ${process.pid} on ${hostname()} (${randomUUID()})`
  const store = () => bucket.put(KEY, Buffer.from(own))
  const other = await bucket.getDated(KEY)
  if (other !== undefined && other.ageMs < ALIVE_MS && !takeOver) throw openElsewhere(other.text)
  if (other !== undefined || takeOver) await store()
  else if ((await bucket.create(KEY, Buffer.from(own), true)) === 'exists') {
    // Of the processes that open it at the same time, one does.
    const first = await bucket.getDated(KEY)
    if (first?.text !== own) throw openElsewhere(first?.text ?? 'another process')
  }
  let isLeaving = false
  let renewing: Promise<void> | undefined
  let cancelRenewal = () => {}
  const renew = async () => {
    try {
      await assertWriter()
      await store()
    } catch (error) {
      const isLost = StorageFailure.is(error) && error.kind === 'blocked'
      if (isLost && !isLeaving) onLost(error)
      if (isLost) return
      // Without a connection, the writes report the failure.
    }
    renewLater()
  }
  const renewLater = () => {
    if (isLeaving) return
    cancelRenewal = clock.schedule(RENEWAL_MS, () => {
      renewing = renew()
    })
  }
  renewLater()
  return async () => {
    isLeaving = true
    cancelRenewal()
    await renewing
    const stored = await bucket.getDated(KEY).catch(() => undefined)
    // What is left of it only delays the next opening.
    if (stored?.text === own) await bucket.remove(KEY).catch(() => {})
  }
}

function openElsewhere(owner: string): StorageFailure {
  const message = `${owner} has the bucket open; with \`takeOver\` it loses it`
  return new StorageFailure('blocked', message, { nothingWritten: true })
}
