// A worker, in a process of its own: `npx tsx worker.ts URL NAME`. Any number may run, on any machine.
import { setTimeout as delay } from 'node:timers/promises'
import { HeadwaterError } from 'headwater'
import { connect } from 'headwater/client'
import { fold } from 'headwater/fold'
import { claimable, EMPTY, type Event, isHeldBy, LEASE_MS, reduce } from './queue.ts'

const [url = '', name = ''] = process.argv.slice(2)
const hw = await connect({ url })
const events = hw.basin('work-queue').stream('events').json<Event>()
// The clock of this machine may be wrong: the time is that of the server, which an append returns, and what
// has passed since.
const started = await events.append({ type: 'started', worker: name })
const startedAt = performance.now()
const serverNow = () => started.end.timestamp + (performance.now() - startedAt)
const queue = fold(events, { initial: EMPTY, reduce, version: 1 })
await queue.loaded()

for (;;) {
  const job = claimable(queue.value, serverNow())
  if (job === undefined) await change()
  // Of two workers that claim the same job, the second one finds that the queue has changed.
  else if (await append({ type: 'claimed', id: job.id, worker: name })) await finish(job.id, job.text)
}

async function finish(id: string, text: string) {
  const result = await work(text)
  // A worker that was too slow has lost its claim, and its result is dropped.
  while (isHeldBy(queue.value, id, name)) {
    if (await append({ type: 'done', id, worker: name, result })) return
  }
}

/** Stands for what takes time. A call of another service would pass the id of the job along. */
async function work(text: string) {
  await delay(600 + Math.random() * 900)
  return [...text].reverse().join('')
}

/** Appends an event if it continues the queue as this worker knows it. */
async function append(event: Event) {
  try {
    const { end } = await events.append(event, { matchSeqNum: queue.position })
    await queue.reached(end.seqNum)
    return true
  } catch (error) {
    if (!HeadwaterError.is(error) || error.code !== 'seq_num_mismatch') throw error
    await queue.reached(error.seqNum!)
    return false
  }
}

/** Waits for the next event, and at most until the claim of a dead worker ends. */
async function change() {
  const waiting = new AbortController()
  const known = queue.value
  const changed = new Promise<void>((resolve) => {
    const subscription = queue.value$.subscribe((value) => {
      if (value !== known) resolve()
    })
    waiting.signal.addEventListener('abort', () => subscription.unsubscribe())
  })
  await Promise.race([changed, delay(LEASE_MS / 4, undefined, { signal: waiting.signal }).catch(() => {})])
  waiting.abort()
}
