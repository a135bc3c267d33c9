import { AppendInput, AppendRecord, type ReadRecord, type ReadSession } from '@s2-dev/streamstore'

/** One batch of string records. */
export function strings(...bodies: string[]): AppendInput {
  return AppendInput.create(bodies.map((body) => AppendRecord.string({ body })))
}

/** One batch of a string record with conditions. */
export function stringWhen(body: string, conditions: { matchSeqNum?: number; fencingToken?: string }) {
  return AppendInput.create([AppendRecord.string({ body })], conditions)
}

export function bodies(records: readonly ReadRecord[]): string[] {
  return records.map(({ body }) => body)
}

/** Everything that a session delivers until its end. */
export async function all<Format extends 'string' | 'bytes'>(
  session: ReadSession<Format>,
): Promise<ReadRecord<Format>[]> {
  const records: ReadRecord<Format>[] = []
  for await (const record of session) records.push(record)
  return records
}

/** The next records of a session that stays open. */
export async function take<Format extends 'string' | 'bytes'>(
  session: ReadSession<Format>,
  count: number,
): Promise<ReadRecord<Format>[]> {
  const reader = session.getReader()
  const records: ReadRecord<Format>[] = []
  try {
    while (records.length < count) {
      const { done, value } = await reader.read()
      if (done) throw new Error(`the session ended after ${records.length} of ${count} records`)
      records.push(value)
    }
    return records
  } finally {
    reader.releaseLock()
  }
}

/** A compressible body of this many bytes. */
export function longText(bytes: number): string {
  return 'durable streams '.repeat(Math.ceil(bytes / 16)).slice(0, bytes)
}
