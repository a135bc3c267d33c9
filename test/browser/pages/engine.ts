import { firstValueFrom, take, toArray } from 'rxjs'
import { memory } from '../../../adapters/storage/memory/index.ts'
import { HeadwaterError, open } from '../../../src/index.ts'

async function openStream() {
  const hw = await open({ storage: memory() })
  return { hw, stream: hw.basin('my-app').stream('chats/42') }
}

/** The code and details of the expected `HeadwaterError`. */
async function refusal(failing: Promise<unknown>) {
  try {
    await failing
  } catch (error) {
    if (!HeadwaterError.is(error)) throw error
    return {
      code: error.code,
      seqNum: error.seqNum,
      fencingToken: error.fencingToken,
      tail: error.tail?.seqNum,
    }
  }
  throw new Error('did not fail')
}

function gate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}

/** Which globals of pages, workers and Node exist. */
export function surroundings() {
  const names = ['window', 'WorkerGlobalScope', 'process', 'Buffer', 'require']
  return names.filter((name) => name in globalThis)
}

export async function appendUnderConditions() {
  const { hw, stream } = await openStream()
  const first = await stream.append(['a', 'b'], { matchSeqNum: 0 })
  const mismatch = await refusal(stream.append('c', { matchSeqNum: 0 }))
  await stream.fence('worker-7', { matchSeqNum: 2 })
  const fenced = await refusal(stream.append('c', { fencingToken: 'worker-6' }))
  const second = await stream.append('c', { fencingToken: 'worker-7' })
  const tooLarge = await refusal(stream.append(new Uint8Array(1_048_576)))
  await hw.close()
  return {
    ends: [first.end.seqNum, second.end.seqNum],
    refusals: [mismatch, fenced, tooLarge],
  }
}

/** All 256 byte values in body, header name and header value, read as bytes and as text. */
export async function everyByte() {
  const { hw, stream } = await openStream()
  const body = Uint8Array.from({ length: 256 }, (_, byte) => byte)
  await stream.append({ body, headers: [[body, body.toReversed()]], timestamp: 1 })
  const { records } = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
  const [text] = await firstValueFrom(stream.read({ seqNum: 0, count: 1 }).records$.pipe(toArray()))
  await hw.close()
  const [record] = records
  const [[name, value]] = record!.headers as [[Uint8Array, Uint8Array]]
  return { body: record!.body, name, value, text: text!.body }
}

/** Follows history and live records in both ways at once. Appends wait until both have read the history. */
export async function follow() {
  const { hw, stream } = await openStream()
  await stream.append(['a', 'b'])
  const subscriber = gate()
  const loop = gate()

  const observed = new Promise<string[]>((resolve, reject) => {
    const bodies: string[] = []
    const subscription = stream
      .follow({ seqNum: 0 })
      .records$.pipe(take(5))
      .subscribe({
        next: ({ seqNum, body }) => {
          bodies.push(`${seqNum} ${body}`)
          if (bodies.length === 2) subscriber.open()
        },
        error: reject,
        complete: () => {
          subscription.unsubscribe()
          resolve(bodies)
        },
      })
  })
  const iterate = async () => {
    const batches: number[][] = []
    for await (const { records } of stream.follow({ seqNum: 1 }, { as: 'bytes' }).batches()) {
      batches.push(records.map(({ seqNum }) => seqNum))
      loop.open()
      if (records.at(-1)!.seqNum === 4) break
    }
    return batches
  }
  const iterated = iterate()

  await Promise.all([subscriber.opened, loop.opened])
  await stream.append(['c', 'd'])
  await stream.append('e')
  const result = { observed: await observed, iterated: (await iterated).flat(), open: hw.stats().openReads }
  await hw.close()
  return result
}

export async function trim() {
  const { hw, stream } = await openStream()
  await stream.append(['a', 'b', 'c'])
  await stream.trim(2)
  const { records } = await stream.readBatch({ seqNum: 0 }, { as: 'bytes' })
  const beyond = await refusal(stream.readBatch({ seqNum: 5 }))
  await hw.close()
  return { seqNums: records.map(({ seqNum }) => seqNum), beyond }
}

/** Closing ends open calls and rejects later ones. */
export async function close() {
  const { hw, stream } = await openStream()
  await stream.append('a')
  const history = gate()
  const observed = refusal(
    stream.follow({ seqNum: 0 }, { as: 'bytes' }).records$.forEach(() => {
      history.open()
    }),
  )
  const session = await stream.appendSession()
  const ticket = await session.submit(['b', 'c'])
  await Promise.all([history.opened, ticket.ack()])
  const polled = refusal(stream.readBatch({ tailOffset: 0, waitMs: 60_000 }))
  await hw.close()
  const ended = await Promise.all([observed, polled])
  const after = await refusal(stream.append('d'))
  const { openReads, waitingReads, pendingAppends } = hw.stats()
  return {
    codes: [...ended, after].map(({ code }) => code),
    left: { openReads, waitingReads, pendingAppends },
  }
}
