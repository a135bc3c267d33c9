import { EventReader } from './event-reader.ts'

const EVENTS = { accept: 'text/event-stream' }

/** Keeps responses alive until the page ends. */
const kept: unknown[] = []
const followers: { readonly source: EventSource; readonly events: EventReader }[] = []

/** Follows with `EventSource` and `fetch`. Resolves when both have reached the tail. */
export async function follow(records: string): Promise<void> {
  const source = new EventSource(`${records}?seq_num=0`)
  const caughtUp = new Promise((resolve) => source.addEventListener('ping', resolve, { once: true }))
  const events = new EventReader(await fetch(`${records}?seq_num=0`, { headers: EVENTS }))
  followers.push({ source, events })
  await Promise.all([events.next(), caughtUp])
}

/** Ends what `follow` started. */
export async function stopFollowing(): Promise<void> {
  for (const { source, events } of followers.splice(0)) {
    source.close()
    await events.cancel()
  }
}

/** Starts the followers and a long poll. */
export async function wait(records: string): Promise<void> {
  await follow(records)
  kept.push(fetch(`${records}?wait=60`))
}

/** Starts a read and does not consume the response. */
export async function begin(records: string): Promise<number> {
  const response = await fetch(`${records}?seq_num=0`, { headers: EVENTS })
  kept.push(response)
  return response.status
}

/** Starts a follower and a long poll, aborts both at the tail, and resolves to the names of their errors. */
export async function abort(records: string): Promise<string[]> {
  const controller = new AbortController()
  const { signal } = controller
  const events = new EventReader(await fetch(`${records}?seq_num=0`, { headers: EVENTS, signal }))
  const polled = fetch(`${records}?wait=60`, { signal })
  for (let event: string | undefined; event !== 'event: ping'; ) [event] = await events.next()
  controller.abort()
  const outcomes = await Promise.allSettled([events.next(), polled])
  return outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.name : 'not aborted'))
}
