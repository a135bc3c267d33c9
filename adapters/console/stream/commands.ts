import { fenceRecord, trimRecord } from '../../../src/model/command.ts'
import { encodeBase64 } from '../../../src/wire/base64.ts'
import { ApiError, type Client } from '../api/client.ts'
import type { Call } from '../api/request.ts'
import type { AppendInput, AppendRecord, Position, ReadBatch } from '../api/types.ts'
import { plural } from '../format.ts'
import type { StreamTarget } from './follow.ts'

/**
 * The call that sets the fencing token; with `current`, only if the stream has that one. Throws for a token
 * of more than 36 bytes.
 */
export function fenceCall(target: StreamTarget, token: string, current: string | undefined): Call {
  return commandCall(target, fenceRecord(token), current === undefined ? {} : { fencing_token: current })
}

/** The call that removes the records before a sequence number. */
export function trimCall(target: StreamTarget, seqNum: number): Call {
  return commandCall(target, trimRecord(seqNum), {})
}

function commandCall(
  { basin, stream, encryptionKey }: StreamTarget,
  { headers, body }: ReturnType<typeof fenceRecord>,
  conditions: Omit<AppendInput, 'records'>,
): Call {
  const record: AppendRecord = {
    headers: headers.map(([name, value]) => [encodeBase64(name), encodeBase64(value)] as const),
    body: encodeBase64(body),
  }
  const path = ['streams', stream, 'records']
  return {
    method: 'POST',
    path,
    basin,
    format: 'base64',
    body: { records: [record], ...conditions },
    encryptionKey,
  }
}

/** What a stream holds: the first record that remains, if there is one, and the tail. */
export interface Extent {
  readonly first: number | undefined
  readonly tail: Position
}

export async function extentOf(
  client: Client,
  { basin, stream, encryptionKey }: StreamTarget,
  signal: AbortSignal,
): Promise<Extent> {
  const path = ['streams', stream, 'records']
  const { tail } = await client.json<{ tail: Position }>(
    { method: 'GET', path: [...path, 'tail'], basin },
    signal,
  )
  const query = { seq_num: 0, count: 1 }
  try {
    const call: Call = { method: 'GET', path, basin, query, format: 'base64', encryptionKey }
    const batch = await client.json<ReadBatch>(call, signal)
    return { first: batch.records[0]?.seq_num, tail }
  } catch (error) {
    if (error instanceof ApiError && error.status === 416) return { first: undefined, tail }
    throw error
  }
}

/** What a stream holds without the records below `trimPoint`, which reads still return for a few seconds. */
export function withoutTrimmed({ first, tail }: Extent, trimPoint: number): Extent {
  const remaining = first === undefined ? tail.seq_num : Math.max(first, trimPoint)
  return { first: remaining < tail.seq_num ? remaining : undefined, tail }
}

/** What a trim would do, in words. */
export function trimEffect({ first, tail }: Extent, seqNum: number): string {
  if (first === undefined) return 'The stream holds no records: nothing is removed.'
  if (seqNum <= first) return `Nothing is removed: the first record is ${first}.`
  if (seqNum > tail.seq_num) {
    return `Removes all ${plural(tail.seq_num - first, 'record')}, and the trim command itself. The tail becomes ${tail.seq_num + 1}.`
  }
  const removed = `Removes ${plural(seqNum - first, 'record')}: ${first} to ${seqNum - 1}.`
  const remaining = tail.seq_num - seqNum
  if (remaining === 0) return `${removed} Only the trim command remains.`
  return `${removed} ${plural(remaining, 'record')} and the trim command remain; ${seqNum} is the first.`
}

/** What a fence would do, in words. */
export function fenceEffect(token: string): string {
  if (token === '') return 'The stream will have no fencing token: appends that name one are rejected.'
  return `Appends that name another token than ${JSON.stringify(token)} will be rejected with 412. Appends that name none are still accepted.`
}
