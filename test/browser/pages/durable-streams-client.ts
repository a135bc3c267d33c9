import { DurableStream, stream } from '@durable-streams/client'

/** Creates a stream of JSON messages. */
export async function create(url: string): Promise<void> {
  await DurableStream.create({ url, contentType: 'application/json' })
}

/** Appends numbers, each with a request. */
export async function append(url: string, numbers: readonly number[]): Promise<void> {
  const handle = new DurableStream({ url, contentType: 'application/json' })
  for (const number of numbers) await handle.append(JSON.stringify({ number }))
}

/** Reads what the stream holds. */
export async function read(url: string): Promise<readonly number[]> {
  const response = await stream<{ number: number }>({ url, live: false })
  return (await response.json()).map(({ number }) => number)
}

const received: number[] = []

/** Follows the stream from its beginning, until the page is closed. */
export async function follow(url: string, live: 'sse' | 'long-poll'): Promise<void> {
  const response = await stream<{ number: number }>({ url, live, offset: '-1' })
  response.subscribeJson<{ number: number }>(async ({ items }) => {
    for (const { number } of items) received.push(number)
  })
}

/** What `follow` has received. */
export async function followed(): Promise<readonly number[]> {
  return received
}
