// The queue: a value derived from its events, by the page and the workers alike.

/** A worker that has not finished a job by then counts as dead, and the job may be claimed again. */
export const LEASE_MS = 4_000

export type Event =
  | { readonly type: 'started'; readonly worker: string }
  | { readonly type: 'added'; readonly id: string; readonly text: string }
  | { readonly type: 'claimed'; readonly id: string; readonly worker: string }
  | { readonly type: 'done'; readonly id: string; readonly worker: string; readonly result: string }

export interface Job {
  readonly id: string
  readonly text: string
  readonly worker?: string
  /** The server's time of the last claim. */
  readonly claimedAt?: number
  readonly claims: number
  readonly result?: string
}

export interface Queue {
  readonly jobs: readonly Job[]
}

export const EMPTY: Queue = { jobs: [] }

/** The queue after an event. The timestamp is the server's, so all see the same. */
export function reduce(
  queue: Queue,
  { value, timestamp }: { readonly value: Event; readonly timestamp?: number },
): Queue {
  if (value.type === 'started') return queue
  if (value.type === 'added') return { jobs: [...queue.jobs, { id: value.id, text: value.text, claims: 0 }] }
  return {
    jobs: queue.jobs.map((job) => {
      if (job.id !== value.id || job.result !== undefined) return job
      if (value.type === 'done') return { ...job, worker: value.worker, result: value.result }
      return { ...job, worker: value.worker, claimedAt: timestamp, claims: job.claims + 1 }
    }),
  }
}

/** The first job that a worker may claim at a time of the server. */
export function claimable({ jobs }: Queue, now: number): Job | undefined {
  return jobs.find(
    ({ result, claimedAt }) =>
      result === undefined && (claimedAt === undefined || now >= claimedAt + LEASE_MS),
  )
}

/** Whether a worker still holds its claim of a job. */
export function isHeldBy({ jobs }: Queue, id: string, worker: string): boolean {
  const job = jobs.find((one) => one.id === id)
  return job?.worker === worker && job.result === undefined
}
