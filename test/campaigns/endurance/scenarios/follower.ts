import { fromBinary } from '@bufbuild/protobuf'
import { FrameDecoder } from '../../../../src/wire/frame.ts'
import { ReadBatchSchema } from '../../../../src/wire/gen/records_pb.ts'
import { messageOf } from '../../../../src/wire/session-frames.ts'
import type { World } from '../harness/world.ts'

/** A follower of a stream. */
export interface Follower {
  /** Resolves to the sequence numbers of the next records; rejects at the end. */
  next(): Promise<readonly number[]>
  leave(): Promise<unknown>
}

/** Begins to follow the stream at a sequence number. */
export type StartFollower = (world: World, seqNum: number) => Follower

const RECORDS = '/v1/streams/stream/records'

function iterated(world: World, seqNum: number, signal?: AbortSignal) {
  const options = signal === undefined ? { signal: world.lasting } : { signal }
  const iterator = world.stream().follow({ seqNum }, options).batches()
  return {
    async next(): Promise<number[]> {
      const { done, value } = await iterator.next()
      if (done) throw new Error('the session ended')
      return value.records.map((record) => record.seqNum)
    },
    iterator,
  }
}

export const LOCAL_FOLLOWERS: readonly StartFollower[] = [
  // Leaves the loop.
  (world, seqNum) => {
    const { next, iterator } = iterated(world, seqNum)
    return { next, leave: () => iterator.return() }
  },
  // Leaves while it waits for the next record.
  (world, seqNum) => {
    const { next, iterator } = iterated(world, seqNum)
    return {
      next,
      leave: async () => {
        const pending = next().catch(() => {})
        await iterator.return()
        await pending
      },
    }
  },
  // Is aborted by its own signal while it waits.
  (world, seqNum) => {
    const controller = new AbortController()
    const { next } = iterated(world, seqNum, controller.signal)
    return {
      next,
      leave: async () => {
        const pending = next().catch(() => {})
        controller.abort()
        await pending
      },
    }
  },
  // Subscribes to an observable.
  (world, seqNum) => {
    const received: number[] = []
    let wake = () => {}
    const subscription = world
      .stream()
      .follow({ seqNum }, { as: 'bytes' })
      .records$.subscribe((record) => {
        received.push(record.seqNum)
        wake()
      })
    return {
      async next() {
        if (received.length === 0) {
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
        return received.splice(0)
      },
      leave: async () => subscription.unsubscribe(),
    }
  },
  // Uses a cursor with heartbeats.
  (world, seqNum) => {
    const opening = world.stream().openCursor({ seqNum }, { heartbeats: true })
    return {
      async next() {
        const event = await (await opening)!.next()
        if (event === undefined) throw new Error('the session ended')
        return event.kind === 'batch' ? event.batch.records.map((record) => record.seqNum) : []
      },
      leave: async () => (await opening)!.close(),
    }
  },
]

/** The rest of a response, decoded by `decode`. */
function responded(
  world: World,
  seqNum: number,
  headers: Record<string, string>,
  decode: (chunk: Uint8Array) => readonly number[] | Promise<readonly number[]>,
) {
  const controller = new AbortController()
  const { signal } = controller
  const opening = world
    .handler(world.request('GET', `${RECORDS}?seq_num=${seqNum}`, { headers, signal }))
    .then((response) => response.body!.getReader())
  return {
    async next() {
      const { done, value } = await (await opening).read()
      if (done) throw new Error('the session ended')
      return decode(value)
    },
    cancel: async () => (await opening).cancel(),
    /** While it waits for the next event. */
    abort: async () => {
      const reader = await opening
      const pending = reader.read().catch(() => {})
      controller.abort()
      await pending
    },
  }
}

function events(world: World, seqNum: number) {
  const text = new TextDecoder()
  return responded(world, seqNum, { accept: 'text/event-stream' }, (chunk) => {
    const data = text.decode(chunk).match(/^event: batch\n(?:.*\n)*?data: (.*)$/m)?.[1]
    if (data === undefined) return []
    const { records } = JSON.parse(data) as { records: { seq_num: number }[] }
    return records.map((record) => record.seq_num)
  })
}

function frames(world: World, seqNum: number) {
  const decoder = new FrameDecoder()
  return responded(world, seqNum, { 'content-type': 'svcs/proto' }, async (chunk) => {
    const seqNums: number[] = []
    for (const frame of decoder.decode(chunk)) {
      if (frame.kind === 'terminal') throw new Error(frame.body)
      const { records } = fromBinary(ReadBatchSchema, await messageOf(frame))
      seqNums.push(...records.map((record) => Number(record.seqNum)))
    }
    return seqNums
  })
}

export const HANDLER_FOLLOWERS: readonly StartFollower[] = [events, frames].flatMap(
  (open): StartFollower[] => [
    (world, seqNum) => {
      const { next, cancel } = open(world, seqNum)
      return { next, leave: cancel }
    },
    (world, seqNum) => {
      const { next, abort } = open(world, seqNum)
      return { next, leave: abort }
    },
  ],
)
