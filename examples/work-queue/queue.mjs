// The queue: a value that follows from its events, which pages and workers derive alike.

/** A worker that has not finished a job by then is taken for dead, and the job may be claimed again. */
export const LEASE_MS = 4_000

/**
 * @typedef {{ type: 'added', id: string, text: string }
 *   | { type: 'claimed', id: string, worker: string }
 *   | { type: 'done', id: string, worker: string, result: string }} Event
 * @typedef {{ id: string, text: string, worker?: string, claimedAt?: number, claims: number, result?: string }} Job
 * @typedef {{ jobs: readonly Job[] }} Queue
 */

/** @type {Queue} */
export const EMPTY = { jobs: [] }

/**
 * The queue after an event. Times are those of the records, so all see the same.
 *
 * @param {Queue} queue
 * @param {{ value: Event, timestamp: number }} record
 * @returns {Queue}
 */
export function reduce(queue, { value, timestamp }) {
  if (value.type === 'added') return { jobs: [...queue.jobs, { id: value.id, text: value.text, claims: 0 }] }
  return { jobs: queue.jobs.map((job) => (job.id === value.id ? changed(job, value, timestamp) : job)) }
}

function changed(job, value, timestamp) {
  if (job.result !== undefined) return job
  if (value.type === 'done') return { ...job, worker: value.worker, result: value.result }
  return { ...job, worker: value.worker, claimedAt: timestamp, claims: job.claims + 1 }
}

/**
 * The first job that a worker may claim.
 *
 * @param {Queue} queue
 * @param {number} now
 */
export function claimable({ jobs }, now) {
  return jobs.find(
    ({ result, claimedAt }) =>
      result === undefined && (claimedAt === undefined || now - claimedAt >= LEASE_MS),
  )
}

/**
 * Whether a worker still holds its claim of a job.
 *
 * @param {Queue} queue
 * @param {string} id
 * @param {string} worker
 */
export function isHeldBy({ jobs }, id, worker) {
  const job = jobs.find((one) => one.id === id)
  return job?.worker === worker && job.result === undefined
}
